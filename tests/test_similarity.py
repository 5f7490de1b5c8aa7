"""Products and squared distances of all pairs of rows."""

import os
import platform
import re
import subprocess
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.similarity import STRIP, distance_blocks, products, squared_distances
from tests.tolerance import assert_close

N, M, K = 7, 11, 5


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(sum(shape) + seed))


def pairs(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """x_i and y_j side by side for all pairs."""
    return x[..., :, None, :], y[..., None, :, :]


def plain_squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """From the differences, which cancel nothing but take N M K numbers."""
    one, other = pairs(x.double(), y.double())
    return (one - other).square().sum(-1)


batches = st.sampled_from([(), (2,), (2, 3)])
sizes = st.integers(0, 7)


@settings(max_examples=50)
@given(batches, sizes, sizes, sizes, st.integers(0, 99))
def test_products_are_those_of_all_pairs(batch: tuple[int, ...], rows: int, others: int, width: int, seed: int) -> None:
    x, y = draw(*batch, rows, width, seed=seed), draw(*batch, others, width, seed=seed + 1)
    one, other = pairs(x, y)
    assert_close(products(x, y), (one * other).sum(-1), atol=1e-14)  # sums that cancel


@settings(max_examples=50)
@given(batches, sizes, sizes, sizes, st.integers(0, 99))
def test_squared_distances_are_those_of_all_pairs(
    batch: tuple[int, ...], rows: int, others: int, width: int, seed: int
) -> None:
    x, y = draw(*batch, rows, width, seed=seed), draw(*batch, others, width, seed=seed + 1)
    assert_close(squared_distances(x, y), plain_squared_distances(x, y), atol=1e-13)  # pairs that nearly coincide


@settings(max_examples=50)
@given(sizes, sizes, sizes, st.integers(1, 20), st.integers(0, 99))
def test_blocks_of_distances_are_the_distances(rows: int, others: int, width: int, elements: int, seed: int) -> None:
    x, y = draw(rows, width, seed=seed), draw(others, width, seed=seed + 1)
    found = list(distance_blocks(x, y, elements=elements))
    assert all(len(d) == 1 or d.numel() <= elements for _, d in found)
    assert [row for span, _ in found for row in range(span.start, span.stop)] == list(range(rows))
    whole = torch.cat([y.new_zeros(0, others), *(d for _, d in found)])
    assert_close(whole, plain_squared_distances(x, y), atol=1e-13)  # pairs that nearly coincide


@pytest.mark.parametrize("rows", [0, 1, STRIP, STRIP + 1, 600])
def test_distances_of_rows_with_themselves_are_mirrored(rows: int) -> None:
    x = draw(rows, 5)
    found = list(distance_blocks(x, x, elements=600 * 600))
    assert len(found) == min(rows, 1)  # no rows, no block
    for _, d in found:
        assert torch.equal(d[:STRIP, STRIP:], d[STRIP:, :STRIP].mT)
        assert_close(d, plain_squared_distances(x, x), atol=1e-13)  # the diagonal
        assert_close(torch.cat([each for _, each in distance_blocks(x, x, elements=rows)]), d, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "period"), [(1000, 10), (1800, 14), (384, 3), pytest.param(4096, 32, marks=pytest.mark.full)]
)
def test_rows_far_out_do_not_move_the_centre(rows: int, period: int) -> None:
    x = draw(rows, 7)
    near = torch.arange(rows) % period > 0
    right = plain_squared_distances(x[near], x[near])
    x[::period] += 1e7
    whole = torch.cat([d for _, d in distance_blocks(x, x)])
    assert_close(whole[near][:, near], right, atol=1e-13)  # the diagonal
    found = squared_distances(x.float(), x.float())[near][:, near]
    assert_close(found, plain_squared_distances(x[near].float(), x[near].float()), atol=1e-4)


@pytest.mark.parametrize("rows", [600, 1800])
def test_copies_of_a_row_are_equally_far(rows: int) -> None:
    x = torch.nn.functional.normalize(draw(rows // 2, 128), dim=-1).repeat(2, 1)
    ((_, d),) = distance_blocks(x, x, elements=rows**2)
    away = ~torch.eye(rows // 2, dtype=torch.bool).repeat(2, 2)  # a row and its copies: rounding of what cancels
    assert torch.equal(d[:, : rows // 2][away[:, : rows // 2]], d[:, rows // 2 :][away[:, : rows // 2]])


def test_blocks_of_distances_keep_the_digits_of_near_duplicates() -> None:
    x = torch.full((3, 128), 0.088388347)
    x[1:, 5] += torch.tensor([1e-5, 3e-5])
    x = torch.cat([x, draw(7, 128).float()])  # the centre lies elsewhere
    ((_, d),) = distance_blocks(x, x)
    assert squared_distances(x, x)[0, 1] != pytest.approx(plain_squared_distances(x, x)[0, 1].item(), rel=0.1)
    assert d.dtype == torch.float32
    assert_close(d, plain_squared_distances(x, x).float(), atol=1e-13)  # the diagonal: squares near 100 cancel
    ((_, half),) = distance_blocks(x.bfloat16(), x.bfloat16())
    assert half.dtype == torch.float32


def test_values_by_hand() -> None:
    x, y = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0], [1.0, 2.0]])
    assert torch.equal(products(x, y), torch.tensor([[11.0, 2.0, 5.0], [0.0, 0.0, 0.0]]))
    assert_close(squared_distances(x, y), torch.tensor([[8.0, 2.0, 0.0], [25.0, 1.0, 5.0]]), atol=1e-6)  # the 0


def test_gradients_are_those_of_the_values() -> None:
    inputs = draw(2, 3, K).requires_grad_(), draw(2, 4, K).requires_grad_()
    for function in (products, squared_distances):
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)


def test_squared_distances_are_never_negative() -> None:
    x = draw(101, K).float()
    assert squared_distances(x, x.clone()).min() >= 0
    assert all(d.min() >= 0 for _, d in distance_blocks(x.double(), x.double()))
    centred = x - x.mean(dim=0)
    squares = centred.square().sum(-1)
    assert (squares[:, None] + squares - 2 * centred @ centred.mT).min() < 0  # without the clamp


def near_duplicates() -> tuple[Tensor, Tensor]:
    """Rows of multiples of 2^-8 below 1 beside 4096: exact in float32, and so are their differences."""
    steps = torch.randint(0, 256, (N + M, K), generator=torch.Generator().manual_seed(0))
    rows = 4096 + steps.float() / 256
    return rows[:N], rows[N:]


def test_large_common_offset_costs_no_digits() -> None:
    x, y = near_duplicates()
    assert_close(squared_distances(x, y), plain_squared_distances(x, y).float())


def test_row_that_lies_far_out_costs_the_others_no_digits() -> None:
    x, y = near_duplicates()
    with_outlier = torch.cat([y, torch.full((1, K), 1e6)])
    assert_close(squared_distances(x, with_outlier)[:, :M], plain_squared_distances(x, y).float())


def test_without_centring_a_large_common_offset_costs_all_digits() -> None:
    x, y = near_duplicates()
    uncentred = x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.mT
    assert (uncentred / plain_squared_distances(x, y) - 1).abs().min() > 0.5


def test_squared_distances_do_not_see_a_common_shift() -> None:
    x, y, shift = draw(N, K), draw(M, K), draw(K)
    assert_close(squared_distances(x + shift, y + shift), squared_distances(x, y))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("width", "other"), [(3, 5), (1, 5), (5, 1), (5, 0)])
@pytest.mark.parametrize("rows", [M, 0])
def test_rows_of_another_width_are_refused(width: int, other: int, rows: int) -> None:
    message = re.escape(f"y must have the width of x, {width}; got {other}.")
    with pytest.raises(ValueError, match=f"^products: {message}$"):
        products(draw(N, width), draw(rows, other))
    with pytest.raises(ValueError, match=f"^(squared_distances|products): {message}$"):
        squared_distances(draw(N, width), draw(rows, other))
    with pytest.raises(ValueError, match=f"^distance_blocks: {message}$"):
        next(distance_blocks(draw(N, width), draw(rows, other)))


def test_blocks_of_no_elements_are_refused() -> None:
    message = "^distance_blocks: elements must be a whole number of at least 1; got 0.$"
    with pytest.raises(ValueError, match=message):
        next(distance_blocks(draw(N, K), draw(M, K), elements=0))


FAULTS = """
import resource, torch
from likewise.similarity import keep_freed_memory
keep_freed_memory()
def batch():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [torch.zeros(7 * 2**18) for _ in range(8)]
    del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
torch.set_num_threads(1)
print([batch() for _ in range(5)][-1])
"""


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory of other C libraries is their own affair")
def test_freed_memory_is_kept() -> None:
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    faults = int(subprocess.check_output([sys.executable, "-c", FAULTS], env=plain, text=True))
    assert faults < 100  # without it 14,304 as a rule, and none if by chance something stays behind the last block
