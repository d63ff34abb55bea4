"""What all tests share: examples are drawn anew from the same seed, and a busy machine fails none of them."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # before any library starts threads: they sleep while they wait

from hypothesis import settings

settings.register_profile("jobcast", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("jobcast")
