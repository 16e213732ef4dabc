"""What all tests share: the profiles of Hypothesis, and signals.

HYPOTHESIS_PROFILE=fast (the default) or thorough (many examples, for nights and releases).

Where CI is set, `fast` draws the same examples in every run: a change is judged by what it changes. Elsewhere each run
draws new ones.
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

# Who runs the tests in the background, or with nohup, may ignore these signals, and what is ignored is inherited: the
# commands that tests start and interrupt would never hear of it. A handler is not inherited.
if os.name != "nt":
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
