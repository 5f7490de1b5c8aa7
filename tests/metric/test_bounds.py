"""The search through cells finds what a search in sorted numbers finds."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric.mining import NEVER, BucketedSearch


def numbers(kind: str, shape: tuple[int, int], seed: int, dtype: torch.dtype) -> Tensor:
    """On a lattice, where many are equal; spread over many powers of ten; or crowded beside one far away."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "lattice":
        return torch.randint(-1, 10, shape, generator=generator).to(dtype)
    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
    if kind == "powers":
        return (10 ** (40 * drawn - 35)).to(dtype)
    drawn = (1e-4 * drawn).to(dtype)
    return torch.cat([drawn[:, 1:], torch.full((shape[0], min(shape[1], 1)), 4.0, dtype=dtype)], 1)


@given(
    st.sampled_from(["lattice", "powers", "crowded"]),
    st.integers(0, 70),
    st.integers(0, 40),
    st.integers(0, 3),
    st.integers(0, 1000),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_bounds_are_counted_as_by_searchsorted(
    kind: str, count: int, columns: int, missing: int, seed: int, dtype: torch.dtype
) -> None:
    bounds = numbers(kind, (3, count), seed, dtype).sort(1).values
    bounds[1, max(0, count - missing) :] = NEVER
    d = numbers(kind, (3, columns), seed + 1, dtype)
    d[0, : min(count, columns)] = bounds[0, : min(count, columns)]
    d[2, columns // 2 :] = NEVER
    present = (bounds < NEVER).sum(1, keepdim=True)
    held = BucketedSearch.of(bounds)
    assert torch.equal(held.below(d).long(), torch.searchsorted(bounds, d).clamp(max=present))
    assert torch.equal(held.reached(d).long(), torch.searchsorted(bounds, d, right=True).clamp(max=present))
    assert torch.equal(held.below(d[1:], slice(1, 3)), held.below(d)[1:])


def test_rows_without_bounds_and_without_numbers_are_searched() -> None:
    none = BucketedSearch.of(torch.zeros(2, 0))
    assert none.below(torch.tensor([[1.0], [NEVER]])).tolist() == [[0], [0]]
    assert BucketedSearch.of(torch.full((2, 3), NEVER)).reached(torch.tensor([[1.0], [NEVER]])).tolist() == [[0], [0]]
    assert BucketedSearch.of(torch.zeros(0, 3)).below(torch.zeros(0, 5)).shape == (0, 5)
    assert BucketedSearch.of(torch.zeros(2, 3)).below(torch.zeros(2, 0)).shape == (2, 0)


@pytest.mark.parametrize("fullest", [1, 2, 3, 4, 7, 8])
def test_the_fullest_cell_says_how_often_is_halved(fullest: int) -> None:
    bounds = torch.cat([1 + 1e-4 * torch.arange(float(fullest)), torch.tensor([100.0])])[None]
    held = BucketedSearch.of(bounds)
    assert held.fullest == fullest
    assert held.below(bounds).tolist() == [list(range(fullest + 1))]
