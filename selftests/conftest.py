"""Property tests are about what holds, not about how fast this machine makes up inputs: it may be busy."""

from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
