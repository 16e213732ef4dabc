"""Settings of all tests: the profiles of Hypothesis, and signal handlers.

HYPOTHESIS_PROFILE is fast (the default) or thorough (many examples, for nightly runs and releases). If CI is set, `fast`
generates the same examples in every run, so that a failure is caused by the change under test; otherwise each run
generates new ones.
"""

import os
import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=150,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    max_examples=10_000,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# Background jobs and nohup may run the tests with these signals ignored. Child processes inherit that, so commands that
# tests start would not react to being interrupted. A handler is not inherited.
if os.name != "nt":
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
