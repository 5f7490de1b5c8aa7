"""The harmonic loss is a sum over triplets of both versions, and only the new one is moved."""

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import harmonic_loss, semi_hard_negatives, triplet_loss
from likewise.metric.harmonic import COMBINATIONS
from tests.metric.brute import all_triplets, batches, exact_distances
from tests.tolerance import assert_close

MARGIN = 0.75
weight_tables = st.dictionaries(st.sampled_from(COMBINATIONS), st.sampled_from([0.0, 0.5, 2.0]))


def by_loops(x: Tensor, labels: Tensor, news: int, weights: dict[str, float]) -> tuple[Tensor, float]:
    """The weighted sum with the closest semi-hard negative of every pair, and the weight of its active triplets."""
    d = exact_distances(x.detach())
    negatives: dict[tuple[int, int], list[int]] = {}
    for a, p, n in all_triplets(labels.tolist()):
        if d[a][p] < d[a][n] < d[a][p] + MARGIN:
            negatives.setdefault((a, p), []).append(n)
    total, active = x.sum() * 0, 0.0
    for (a, p), band in negatives.items():
        n = min(band, key=lambda row: (d[a][row], row))
        versions = "".join("n" if row < news else "o" for row in (a, p, n))
        weight = weights.get(versions, 1.0) if versions != "ooo" else 0.0
        term = (x[a] - x[p]).square().sum() - (x[a] - x[n]).square().sum() + MARGIN
        total, active = total + weight * term, active + weight
    return total, active


@pytest.mark.slow
@given(batches(), st.integers(0, 12), weight_tables, st.sampled_from(["sum", "mean"]))
def test_it_is_the_weighted_sum_over_both_sets(
    batch: tuple[Tensor, Tensor], news: int, weights: dict[str, float], reduction: str
) -> None:
    x, labels = batch
    news = min(news, len(x))
    new, old = x[:news].clone().requires_grad_(), x[news:].clone().requires_grad_()
    loss = harmonic_loss(
        new,
        old,
        labels[:news],
        old_labels=labels[news:],
        margin=MARGIN,
        weights=weights,
        reduction=reduction,  # ty: ignore[invalid-argument-type]
    )
    x.requires_grad_()
    expected, active = by_loops(x, labels, news, weights)
    expected = expected / active if reduction == "mean" and active else expected
    assert_close(loss, expected.detach(), atol=1e-12)
    gradient, none = torch.autograd.grad(loss, (new, old), allow_unused=True)
    assert_close(gradient, torch.autograd.grad(expected, x)[0][:news], atol=1e-12)
    assert none is None


@pytest.mark.slow
@given(batches())
def test_without_old_vectors_it_is_the_triplet_loss(batch: tuple[Tensor, Tensor]) -> None:
    x, labels = batch
    alone = triplet_loss(x, semi_hard_negatives(x, labels, margin=MARGIN), margin=MARGIN)
    both = harmonic_loss(x, x[:0], labels, old_labels=labels[:0], margin=MARGIN)
    assert_close(both, alone)


def test_old_vectors_of_the_same_images_share_their_labels() -> None:
    generator = torch.Generator().manual_seed(0)
    new, old = torch.randn(2, 12, 5, generator=generator, dtype=torch.float64)
    labels = torch.arange(12) // 3
    assert_close(harmonic_loss(new, old, labels), harmonic_loss(new, old, labels, old_labels=labels))


def test_the_seven_combinations_add_up() -> None:
    generator = torch.Generator().manual_seed(0)
    new, old = torch.randn(2, 21, 3, generator=generator, dtype=torch.float64)
    labels = torch.arange(21) // 7
    assert set(COMBINATIONS) == {"".join(each) for each in product("no", repeat=3)} - {"ooo"}
    parts = [
        harmonic_loss(new, old, labels, margin=2.0, weights={other: float(other == name) for other in COMBINATIONS})
        for name in COMBINATIONS
    ]
    assert all(part > 0 for part in parts)
    assert_close(torch.stack(parts).sum(), harmonic_loss(new, old, labels, margin=2.0))


def test_gradient_by_differences() -> None:
    generator = torch.Generator().manual_seed(1)
    new, old = torch.randn(2, 7, 3, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    assert torch.autograd.gradcheck(lambda x: harmonic_loss(x, old, labels, margin=2.0), new.requires_grad_())


def test_stored_half_precision_vectors_are_taken() -> None:
    generator = torch.Generator().manual_seed(1)
    new, old = torch.randn(2, 9, 3, generator=generator)
    loss = harmonic_loss(new.requires_grad_(), old.half(), torch.arange(9) // 3, margin=2.0)
    assert loss.dtype == torch.float32
    assert torch.autograd.grad(loss, new)[0].any()


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margin": -1.0}, "margin must be a positive number; got -1.0."),
        (
            {"weights": {"ooo": 1.0}},
            "weights must be one of 'nnn', 'nno', 'non', 'noo', 'onn', 'ono', 'oon'; got 'ooo'.",
        ),
        ({"weights": {"nno": -1.0}}, "weights['nno'] must be a number of at least 0; got -1.0."),
        ({"reduction": "max"}, "reduction must be one of 'sum', 'mean'; got 'max'."),
        ({"old": torch.zeros(3, 2)}, "old must have the width of new, 1; got 2."),
        ({"old": torch.zeros(2, 1)}, "old_labels must be given when old has other rows than new; got None."),
        ({"labels": torch.zeros(4).long()}, "labels must have one entry for each of 3 rows; got (4,)."),
    ],
)
def test_wrong_arguments_are_refused(options: dict, message: str) -> None:
    tensors: dict[str, Any] = {"new": torch.zeros(3, 1), "old": torch.zeros(3, 1), "labels": torch.zeros(3).long()}
    with pytest.raises(ValueError) as error:  # noqa: PT011 -- the whole message is compared below
        harmonic_loss(**{**tensors, **options})
    assert str(error.value) == f"harmonic_loss: {message}"
