"""What checks assert is told in full, as in tests."""

import pytest

for name in ("elastic", "energy", "random_jobs", "rigid", "tasks", "worlds"):
    pytest.register_assert_rewrite(f"tests.contract.{name}")
