"""Chosen triplets are those that three loops choose, ties included."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import Triplets, batch_all_loss, batch_hard, mining, semi_hard_negatives
from likewise.metric.mining import NEVER, Shares, negative_shares
from likewise.similarity import distance_blocks
from tests.metric.brute import all_triplets, batches, exact_distances
from tests.tolerance import assert_close

MARGIN = 0.75  # on the lattice of `batches` distances meet t + margin exactly


def chosen(triplets: Triplets) -> list[tuple[int, ...]]:
    return sorted(zip(*(rows.tolist() for rows in triplets), strict=True))


def pairs(labels: Tensor) -> list[tuple[int, int, list[int]]]:
    """Every anchor and positive with all negatives; a pair without negatives too."""
    marks = labels.tolist()
    rows = range(len(marks))
    return [
        (a, p, [n for n in rows if marks[n] != marks[a]]) for a in rows for p in rows if a != p and marks[a] == marks[p]
    ]


@pytest.mark.slow
@given(batches(), st.sampled_from(["skip", "farthest", "hardest"]))
def test_closest_semi_hard_is_the_closest_within_the_band(batch: tuple[Tensor, Tensor], fallback: str) -> None:
    x, labels = batch
    d = exact_distances(x)
    expected = []
    for a, p, negatives in pairs(labels):
        farther = [n for n in negatives if d[a][n] > d[a][p]]
        band = [n for n in farther if d[a][n] < d[a][p] + MARGIN]
        if band:
            expected.append((a, p, min(band, key=lambda n: (d[a][n], n))))
        elif negatives and not farther and fallback == "farthest":
            expected.append((a, p, min(negatives, key=lambda n: (-d[a][n], n))))
        elif negatives and not farther and fallback == "hardest":
            expected.append((a, p, min(negatives, key=lambda n: (d[a][n], n))))
    assert chosen(semi_hard_negatives(x, labels, margin=MARGIN, fallback=fallback)) == sorted(expected)  # ty: ignore[invalid-argument-type]


@pytest.mark.slow
@given(batches(), st.integers(0, 100))
def test_random_semi_hard_is_any_within_the_band(batch: tuple[Tensor, Tensor], seed: int) -> None:
    x, labels = batch
    d = exact_distances(x)
    found = semi_hard_negatives(
        x, labels, margin=MARGIN, choose="random", generator=torch.Generator().manual_seed(seed)
    )
    bands = {
        (a, p): [n for n in negatives if d[a][p] < d[a][n] < d[a][p] + MARGIN] for a, p, negatives in pairs(labels)
    }
    assert sorted((a, p) for a, p, _ in chosen(found)) == sorted(pair for pair, band in bands.items() if band)
    assert all(n in bands[a, p] for a, p, n in chosen(found))


@pytest.mark.slow
def test_random_choice_is_uniform() -> None:
    x = torch.tensor([[0.0], [0.1], [0.5], [-0.52], [0.54], [3.0]])
    labels = torch.tensor([0, 0, 1, 2, 3, 4])
    generator = torch.Generator().manual_seed(0)
    draws = [semi_hard_negatives(x, labels, margin=0.5, choose="random", generator=generator) for _ in range(150)]
    counts = [sum((0, 1, n) in chosen(draw) for draw in draws) for n in (2, 3, 4)]
    assert sum(counts) == 150
    assert all(abs(count - 50) < 5 * (150 * 2 / 9) ** 0.5 for count in counts)


@pytest.mark.slow
@given(batches())
def test_batch_hard_is_farthest_positive_and_closest_negative(batch: tuple[Tensor, Tensor]) -> None:
    x, labels = batch
    d = exact_distances(x)
    marks = labels.tolist()
    found = chosen(batch_hard(x, labels))
    anchors = sorted({a for a, _, _ in all_triplets(marks)})
    assert [a for a, _, _ in found] == anchors
    for a, p, n in found:
        farthest = max(d[a][j] for j in range(len(marks)) if marks[j] == marks[a])
        assert (p != a, marks[p], d[a][p]) == (True, marks[a], farthest)
        assert n == min((j for j in range(len(marks)) if marks[j] != marks[a]), key=lambda j: (d[a][j], j))


@pytest.mark.slow
@given(batches())
def test_shares_are_those_of_the_list(batch: tuple[Tensor, Tensor]) -> None:
    x, labels = batch
    d = exact_distances(x)
    triplets = all_triplets(labels.tolist())
    hard = sum(d[a][n] <= d[a][p] for a, p, n in triplets)
    easy = sum(d[a][n] >= d[a][p] + MARGIN for a, p, n in triplets)
    total = max(len(triplets), 1)
    found = negative_shares(x, labels, margin=MARGIN)
    semi_hard = len(triplets) - hard - easy
    assert found == pytest.approx(Shares(hard / total, semi_hard / total, easy / total, len(triplets)))


@pytest.mark.slow
@given(batches(), st.integers(1, 30))
def test_blocks_of_anchors_change_nothing(batch: tuple[Tensor, Tensor], elements: int) -> None:
    x, labels = batch
    whole = [torch.cat(fields) for fields in zip(*mining.blocks(x, labels), strict=True)]
    parts = [torch.cat(fields) for fields in zip(*mining.blocks(x, labels, elements=elements), strict=True)]
    assert len(list(mining.blocks(x, labels, elements=elements))) >= len(labels) ** 2 // max(elements, len(labels), 1)
    for one, other in zip(whole, parts, strict=True):
        assert_close(other.masked_fill(other == NEVER, -1), one.masked_fill(one == NEVER, -1), atol=1e-13)


@pytest.mark.slow
@given(batches(), st.integers(1, 30))
def test_parts_of_blocks_change_nothing(batch: tuple[Tensor, Tensor], part: int) -> None:
    def answers() -> tuple[list[tuple[int, ...]], Shares, Tensor]:
        triplets = chosen(semi_hard_negatives(*batch, margin=MARGIN))
        return triplets, negative_shares(*batch, margin=MARGIN), batch_all_loss(*batch, margin=MARGIN)

    whole = answers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "PART", part)
        parts = answers()
    assert parts[:2] == whole[:2]
    assert_close(parts[2], whole[2], atol=1e-12)


def test_a_batch_of_many_blocks_is_mined_as_one() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 40
    x = torch.nn.functional.normalize(torch.randn(600, 16, generator=generator), dim=-1)
    whole = semi_hard_negatives(x, labels)
    ((_, d),) = distance_blocks(x, x, elements=x.shape[0] ** 2)
    kin = labels[:, None] == labels
    t = d[whole.anchor, whole.positive]
    inside = (d[whole.anchor] > t[:, None]) & ~kin[whole.anchor]
    best = d[whole.anchor].masked_fill(~inside, NEVER).min(1)
    assert len(whole.anchor) > 1000
    assert torch.equal(whole.negative, best.indices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mining, "WHOLE", 600 * 77)
        patch.setattr(mining, "PART", 600 * 50)
        assert len(list(mining.blocks(x, labels))) == 12
        assert chosen(semi_hard_negatives(x, labels)) == chosen(whole)


@pytest.mark.parametrize("noise", [1.0, 1e-5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_copy_of_the_positive_is_hard(dtype: torch.dtype, noise: float) -> None:
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(60, 128, generator=generator, dtype=torch.float64).repeat_interleave(10, 0)
    x = centres[:300] + noise * torch.randn(300, 128, generator=generator, dtype=torch.float64)
    x = torch.nn.functional.normalize(x, dim=-1).to(dtype).repeat(2, 1)  # row i is row i + 300, of another identity
    found = semi_hard_negatives(x, torch.arange(600) // 10)
    assert len(found.anchor) > 100
    assert not ((found.positive - found.negative).abs() == 300).any()


def test_distances_of_float64_are_told_apart_by_41_bits() -> None:
    x = torch.full((2048, 1), 3.0, dtype=torch.float64)
    x[:4, 0] = torch.tensor([0.0, 0.5, 1 + 2.0**-39, 1.0], dtype=torch.float64)
    labels = torch.arange(2048)
    labels[1] = 0
    assert (0, 1, 3) in chosen(semi_hard_negatives(x, labels, margin=1.0))


def test_far_distances_are_told_apart() -> None:
    x = torch.tensor([[0.0], [2000.0], [5000.0], [4000.0]])
    assert (0, 1, 3) in chosen(semi_hard_negatives(x, torch.tensor([0, 0, 1, 2]), margin=1e9))


def test_a_margin_that_rounding_swallows_counts_nothing_twice() -> None:
    x = torch.tensor([[0.0], [4096.0], [-4096.0]])  # t = d = t + margin in float32
    assert negative_shares(x, torch.tensor([0, 0, 1]), margin=0.2) == Shares(0.5, 0.0, 0.5, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_equally_close_negatives_the_first_is_taken(dtype: torch.dtype) -> None:
    x = torch.tensor([[0.0], [0.5], [3.0], [-0.7], [0.7], [-0.7], [9.0]], dtype=dtype)
    labels = torch.tensor([0, 0, 1, 2, 3, 4, 1])
    found = semi_hard_negatives(x, labels, margin=0.5)
    assert (0, 1, 3) in chosen(found)


def test_near_duplicates_keep_their_order() -> None:
    base = torch.nn.functional.normalize(torch.arange(1.0, 129.0), dim=0)
    steps = torch.tensor([0.0, 1e-5, 3e-5, 7e-5])  # squared distances from 1e-10 on: lost in a float32 product
    x = base + steps[:, None] * torch.nn.functional.one_hot(torch.tensor(5), 128)
    found = semi_hard_negatives(x, torch.tensor([0, 0, 1, 1]), margin=0.2)
    assert chosen(found) == [(0, 1, 2), (1, 0, 2), (3, 2, 1)]


@pytest.mark.parametrize("choose", ["closest", "random"])
@pytest.mark.parametrize("labels", [[], [0], [0, 0], [0, 1]])
def test_batches_without_triplets_give_none(labels: list[int], choose: str) -> None:
    x = torch.zeros(len(labels), 3)
    marks = torch.tensor(labels, dtype=torch.int64)
    assert chosen(semi_hard_negatives(x, marks, choose=choose, fallback="hardest")) == []  # ty: ignore[invalid-argument-type]
    assert chosen(batch_hard(x, marks)) == []
    assert negative_shares(x, marks).count == 0


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": 0.0}, "semi_hard_negatives: margin must be a positive number; got 0.0."),
        ({"choose": "best"}, "semi_hard_negatives: choose must be one of 'closest', 'random'; got 'best'."),
        ({"fallback": "x"}, "semi_hard_negatives: fallback must be one of 'skip', 'farthest', 'hardest'; got 'x'."),
    ],
)
def test_wrong_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        semi_hard_negatives(torch.zeros(2, 1), torch.zeros(2, dtype=torch.int64), **options)


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels must be whole numbers; got torch\.float32"):
        batch_hard(torch.zeros(2, 1), torch.zeros(2))
    with pytest.raises(ValueError, match=r"labels must have one entry for each of 2 rows; got \(3,\)"):
        batch_hard(torch.zeros(2, 1), torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("mine", [semi_hard_negatives, batch_hard, negative_shares, batch_all_loss])
def test_embeddings_that_are_not_finite_are_refused(mine: Callable[[Tensor, Tensor], object]) -> None:
    x = torch.zeros(4, 2)
    x[1, 0], x[2] = torch.nan, torch.inf
    message = r"embeddings must have finite rows, of length up to 6\.5e\+18; got {} that are not\.$"
    with pytest.raises(ValueError, match=message.format(2)):
        mine(x, torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match=message.format(4)):
        mine(torch.eye(4) * 1e20, torch.tensor([0, 0, 1, 1]))  # whose squared distances are not finite
    with pytest.raises(ValueError, match=r"of length up to 4\.7e\+153; got 4 that are not\.$"):
        mine(torch.eye(4, dtype=torch.float64) * 1e160, torch.tensor([0, 0, 1, 1]))
    mine(torch.eye(4) * 6e18, torch.tensor([0, 0, 1, 1]))
