"""Every test here is full, and importing transformers takes seconds: a run without those does not collect them."""

import pytest


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    return True if "not full" in config.getoption("markexpr") else None
