"""Settings of all tests: the profiles of Hypothesis, and signal handlers.

By default the property tests run the same examples every time, so that a failure is caused by the change under test. With
HYPOTHESIS_PROFILE=random each run draws others, or those of ``--hypothesis-seed``; `make fuzz` runs many seeds.
"""

import os
import signal

from hypothesis import HealthCheck, settings

for name, derandomize in (("fixed", True), ("random", False)):
    settings.register_profile(
        name,
        max_examples=150,
        deadline=None,
        derandomize=derandomize,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Background jobs and nohup may run the tests with these signals ignored. Child processes inherit that, so commands that
# tests start would not react to being interrupted. A handler is not inherited.
if os.name != "nt":
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
