"""The laws of attention hold for the compiled kernel and for torch's operators: `both_forms` runs tests on each."""

from collections.abc import Iterator

import pytest

from likewise.attention.native import library
from tests.attention.drawing import torch_form


@pytest.fixture(scope="module", params=["kernel", "torch"])
def both_forms(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which form is in use; where the kernel was not built, its tests are skipped."""
    if request.param == "torch":
        with torch_form():
            yield request.param
    elif library.kernel.functions is None:
        pytest.skip(f"the kernel is {library.about()}")
    else:
        yield request.param
