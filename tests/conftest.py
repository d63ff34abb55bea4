"""What all tests share: examples are drawn anew from the same seed, and a busy machine fails none of them."""

from hypothesis import settings

settings.register_profile("jobcast", deadline=None, derandomize=True)
settings.load_profile("jobcast")
