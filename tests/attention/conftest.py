"""The laws of attention hold for the compiled kernel and for torch's operators: `both_forms` runs tests on each."""

from collections.abc import Iterator

import pytest
import torch

from likewise.attention.native import library, ops
from tests.attention import brute, drawing, modules


@pytest.fixture(scope="module", params=["torch", "kernel"])
def both_forms(request: pytest.FixtureRequest) -> Iterator[str]:
    """Which form is in use. What is drawn is of float64 for torch's operators and of float32 for the kernel."""
    if request.param == "torch":
        with drawing.torch_form():
            yield request.param
    elif library.kernel.functions is None:
        pytest.skip(f"the kernel is {library.about()}")
    else:
        drawing.Drawn.dtype = torch.float32
        yield request.param
        drawing.Drawn.dtype = torch.float64


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a law over maps, the kernel runs the cases whose map it covers; the slow ones are in the full run."""
    left = [item for item in items if _form_of(item) != "kernel" or _covered(item)]
    for item in left:
        if _form_of(item) == "kernel" and item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.full)
    items[:] = left


def _form_of(item: pytest.Item) -> str | None:
    return getattr(item, "callspec", None) and item.callspec.params.get("both_forms")  # ty: ignore[missing-attribute]


def _covered(item: pytest.Item) -> bool:
    """True unless the kernel leaves the case to torch: other maps, other structure, exact attention, float64."""
    given = item.callspec.params  # ty: ignore[missing-attribute]
    if given.get("dtype") == torch.float64 or given.get("kind") in ("prefix", "block", "large block"):
        return False
    if isinstance(given.get("attend"), str):
        return given["attend"] in brute.MAPS and type(modules.ATTENDS[given["attend"]]().features) in ops.DESCRIPTIONS
    if "attend" in given:
        return type(getattr(given["attend"], "keywords", {}).get("features")) in ops.DESCRIPTIONS
    name = given.get("name")
    if name not in brute.MAPS or "," in name:  # with other parameters it takes the same path
        return name is None
    return type(brute.MAPS[name].make(5, 3, drawing.seeded(0))) in ops.DESCRIPTIONS
