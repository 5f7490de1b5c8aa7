"""The k nearest rows, exactly: whatever the blocks, the offset, the ties and the duplicates."""

import re
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise import similarity
from likewise.progress import silent
from likewise.similarity import nearest, smallest

N, M, K = 7, 53, 5


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape) + seed))


def plain_nearest(x: Tensor, y: Tensor, k: int, exclude: Tensor | None = None) -> list[list[int]]:
    """Sorted by (distance, index), all of it, in float64."""
    found = []
    for row, query in enumerate(x.double()):
        own = -1 if exclude is None else int(exclude[row])
        squared = (y.double() - query).square().sum(-1).tolist()
        found.append([index for _, index in sorted(zip(squared, range(len(y)), strict=True)) if index != own][:k])
    return found


@settings(max_examples=60)
@given(
    st.integers(0, 9),
    st.integers(2, 60),
    st.integers(0, 6),
    st.integers(1, 40),
    st.booleans(),
    st.sampled_from([0, 4096]),
    st.sampled_from([torch.float32, torch.float64]),
    st.integers(0, 99),
)
def test_nearest_rows_are_those_of_a_full_sort(
    rows: int, others: int, width: int, support: int, whole: bool, offset: int, dtype: torch.dtype, seed: int
) -> None:
    x, y = draw(rows, width, seed=seed), draw(others, width, seed=seed + 1)
    if whole:
        x, y = x.round(), y.round()  # many ties, and rows that coincide
    x, y = (x + offset).to(dtype), (y + offset).to(dtype)
    k = 1 + seed % (others - 1)
    exclude = torch.arange(rows) % others if seed % 2 else None
    found = nearest(x, y, k=k, exclude=exclude, support=support)
    assert found.indices.tolist() == plain_nearest(x, y, k, exclude)
    pairs = (x.double()[:, None] - y.double()[found.indices]).square().sum(-1)
    torch.testing.assert_close(found.squared, pairs, rtol=1e-14, atol=0)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = draw(N, K), draw(M, K)
    whole = nearest(x, y, k=5)
    monkeypatch.setattr(similarity, "QUERIES", 2)
    monkeypatch.setattr(similarity, "ELEMENTS", 7)
    for support in (1, 3, 7, M):
        parts = nearest(x, y, k=5, support=support)
        assert torch.equal(parts.indices, whole.indices)
        assert torch.equal(parts.squared, whole.squared)


def test_a_bad_centre_costs_time_and_no_neighbour() -> None:
    x, y = draw(N, 97) / 32 + 2048, draw(M, 97, seed=1) / 32 + 2048
    centred, uncentred = nearest(x, y, k=5), nearest(x, y, k=5, centre=torch.zeros(97))
    assert (centred.recomputed, uncentred.recomputed) == (0, N)
    assert torch.equal(uncentred.indices, centred.indices)
    lost = x.square().sum(-1)[:, None] + y.square().sum(-1) - 2 * x @ y.mT  # what others do
    assert not torch.equal(lost.topk(5, largest=False).indices, centred.indices)


def test_more_duplicates_than_candidates_are_taken_by_index() -> None:
    y = torch.cat([torch.zeros(40, K), torch.ones(3, K)])
    found = nearest(torch.ones(1, K), y, k=9, support=11)
    assert found.indices.tolist() == [[40, 41, 42, 0, 1, 2, 3, 4, 5]]
    assert found.recomputed == 1
    own = nearest(torch.zeros(1, K), y, k=3, exclude=torch.tensor([1]))
    assert own.indices.tolist() == [[0, 2, 3]]


def test_numbers_whose_squares_overflow_are_settled_in_double() -> None:
    x, y = draw(N, K) * 1e25, draw(M, K) * 1e25
    found = nearest(x, y, k=3)
    assert found.indices.tolist() == plain_nearest(x, y, 3)
    assert found.recomputed == N


def test_rows_may_come_from_elsewhere_than_a_tensor() -> None:
    class Counted:
        shape = (M, K)

        def __init__(self) -> None:
            self.most = 0

        def __getitem__(self, index: slice) -> Tensor:
            found = draw(M, K)[index]
            self.most = max(self.most, len(found))
            return found

    rows = Counted()
    assert nearest(draw(N, K), rows, k=5, support=3).indices.tolist() == plain_nearest(draw(N, K), draw(M, K), 5)
    assert rows.most == 3


def test_progress_is_told_up_to_the_end() -> None:
    parts: list[float] = []
    nearest(draw(N, K), draw(M, K), k=1, support=20, progress=lambda done, doing: parts.append(done))
    assert parts == [20 / M, 40 / M, 1.0]


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(-2, 2), min_size=6, max_size=6), min_size=1, max_size=5), st.integers(1, 6))
def test_smallest_columns_are_those_of_a_stable_sort(rows: list[list[int]], k: int) -> None:
    values = torch.tensor(rows, dtype=torch.float64)
    assert torch.equal(smallest(values, k), values.sort(dim=1, stable=True).indices[:, :k])


def test_the_lower_bound_holds_for_every_pair() -> None:
    """Candidates are those of least bound; the next bound must not exceed any distance that is left."""
    x, y = draw(31, 301), draw(211, 301)
    candidates, bounds = similarity._by_products(x, y, 7, torch.zeros(301), similarity.SUPPORT, silent)
    squared = (x.double()[:, None] - y.double()).square().sum(-1)
    left = squared.scatter(1, candidates, torch.inf).amin(dim=1)
    assert (bounds <= left).all()
    farthest = squared.gather(1, candidates).amax(dim=1)
    assert (bounds > farthest * 0.999).all()  # and it is not idle


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1; got 0."),
        ({"k": M}, f"k must be at most {M - 1}, the rows of y that count; got {M}."),
        ({"support": 0}, "support must be a whole number of at least 1; got 0."),
    ],
)
def test_wrong_arguments_are_refused(change: dict, message: str) -> None:
    options: dict[str, Any] = {"k": 3, "exclude": torch.arange(N)} | change
    with pytest.raises(ValueError, match=f"^nearest: {re.escape(message)}$"):
        nearest(draw(N, K), draw(M, K), **options)


@pytest.mark.usefixtures("without_shape_checks")
def test_rows_of_another_width_are_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("nearest: y must have the width of x, 5; got 3.")):
        nearest(draw(N, 5), draw(M, 3), k=1)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
@pytest.mark.parametrize("rows", [M, 7])  # more rows than candidates, and fewer
def test_numbers_that_are_not_finite_are_refused(bad: float, rows: int) -> None:
    x, y = draw(N, K), draw(rows, K)
    x[2, 1] = bad
    with pytest.raises(ValueError, match=re.escape("nearest: x must be finite; got 1 rows that are not.")):
        nearest(x, y, k=3)
    y[rows - 1, 0] = bad
    with pytest.raises(ValueError, match=re.escape("nearest: y must be finite; got 1 rows that are not.")):
        nearest(draw(N, K), y, k=3, support=20, centre=torch.zeros(K))


def test_differences_are_taken_in_double() -> None:
    """1 - 1e-8 and 1 + 1e-8 are both 1 in single precision; the second row is the nearer."""
    found = nearest(torch.tensor([[1.0]]), torch.tensor([[-1e-8], [1e-8]]), k=2)
    assert found.indices.tolist() == [[1, 0]]
