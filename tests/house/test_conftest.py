"""The test bench itself: shapes are checked, memory is poisoned, compiled code escapes the checks."""

import pytest
import torch

from likewise.attention import softmax_attention
from tests import shapes
from tests.tolerance import assert_close


def test_uninitialised_memory_is_poisoned() -> None:
    x = torch.ones(3)
    for fresh in (torch.empty(3), torch.empty_like(x), x.new_empty(3), torch.empty(3, dtype=torch.bfloat16)):
        assert fresh.isnan().all()
    assert (torch.empty(3, dtype=torch.int64) == torch.iinfo(torch.int64).max).all()


@pytest.mark.slow  # it is not, but a quick run has no shape checks
def test_shapes_are_checked() -> None:
    from likewise.similarity import products

    assert "products" in {name for _, name, _ in shapes.checked_functions()}
    with pytest.raises(TypeError, match="Type-check"):
        products("not a tensor", torch.ones(2, 3))  # ty: ignore[invalid-argument-type]


@pytest.mark.usefixtures("without_shape_checks")
def test_checks_can_be_taken_away() -> None:
    from likewise import similarity

    assert list(shapes.checked_functions()) == []
    with pytest.raises(AttributeError):
        similarity.products("not a tensor", torch.ones(2, 3))  # ty: ignore[invalid-argument-type]


@pytest.mark.usefixtures("without_shape_checks")
def test_compile_sees_plain_functions() -> None:

    q, k, v = torch.ones(1, 2, 3, 5), torch.ones(1, 2, 3, 5), torch.arange(6.0).reshape(1, 2, 3, 1)
    compiled = torch.compile(softmax_attention, fullgraph=True, backend="eager")
    assert_close(compiled(q, k, v), softmax_attention(q, k, v))


def test_close_is_relative_by_dtype() -> None:
    one = torch.ones(2, dtype=torch.float64)
    assert_close(one * (1 + 1e-10), one)
    assert_close(one.float() * (1 + 1e-5), one.float())
    assert_close(one.bfloat16() * 1.005, one)
    assert_close(torch.tensor([1e-12]), torch.tensor([0.0]), atol=1e-11)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (torch.tensor([1 + 1e-8], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)),
        (torch.tensor([1 + 1e-3]), torch.tensor([1.0])),
        (torch.tensor([1e-30]), torch.tensor([0.0])),
        (torch.tensor([1.0, 1.02], dtype=torch.bfloat16), torch.tensor([1.0, 1.0])),
        (torch.tensor([float("nan")]), torch.tensor([float("nan")])),
        (torch.tensor([float("nan")], dtype=torch.bfloat16), torch.tensor([1.0])),
        (torch.ones(2), torch.ones(1, 2)),
        (torch.tensor([1]), torch.tensor([2])),
    ],
)
def test_what_is_not_close_is_found(actual: torch.Tensor, expected: torch.Tensor) -> None:
    with pytest.raises(AssertionError):
        assert_close(actual, expected)
