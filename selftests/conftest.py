"""Property tests are about what holds, not about how fast this machine makes up inputs: it may be busy.

They make up the same inputs in every run, and few, so that all of them together are a matter of seconds;
``HYPOTHESIS_PROFILE=deep`` takes 25 times as many.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", settings.get_profile("steady"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
