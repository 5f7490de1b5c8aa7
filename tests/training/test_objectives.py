"""Objectives are what the metric room computes, and draw by chance from the step alone."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from likewise.metric import batch_all_loss, batch_hard, semi_hard_negatives, triplet_loss
from likewise.training import Classes, EveryTriplet, Hardest, Objective, RandomTriplets, SemiHard
from likewise.training.objectives import random_triplets
from tests.tolerance import assert_close
from tests.training.problems import batch

LABELS = [0, 1, 0, 2, 1, 0, 2, 3]


def embeddings(labels: list[int]) -> Tensor:
    x = torch.randn(len(labels), 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return functional.normalize(x)


def test_semi_hard_is_the_mean_over_its_triplets() -> None:
    e, some = embeddings(LABELS), batch(LABELS)
    triplets = semi_hard_negatives(e, some.labels, margin=0.7, fallback="farthest")
    expected = triplet_loss(e, triplets, margin=0.7, reduction="mean")
    assert_close(SemiHard(margin=0.7, fallback="farthest")(e, some), expected)
    assert expected > 0


def test_hardest_and_every_are_the_metric_rooms() -> None:
    e, some = embeddings(LABELS), batch(LABELS)
    hard = triplet_loss(e, batch_hard(e, some.labels), margin=0.3, reduction="mean")
    assert_close(Hardest(margin=0.3)(e, some), hard)
    every = batch_all_loss(e, some.labels, margin=0.3, reduction="mean")
    assert_close(EveryTriplet(margin=0.3)(e, some), every)
    assert hard != every


def test_classes_are_cross_entropy_over_cosines() -> None:
    e, some = embeddings(LABELS), batch(LABELS)
    objective = Classes(5, 4, scale=8.0).double()
    cosines = functional.cosine_similarity(e[:, None], objective.weight, dim=-1)
    expected = -torch.log_softmax(8 * cosines, 1)[torch.arange(8), some.labels].mean()
    assert_close(objective(e, some), expected)


@pytest.mark.parametrize("width", [3, 128])
def test_weights_of_classes_begin_at_length_1(width: int) -> None:
    assert_close(Classes(width, 7).weight.norm(dim=1), torch.ones(7))


def test_a_margin_is_taken_off_the_right_cosine_only() -> None:
    e, some = embeddings(LABELS), batch(LABELS)
    objective = Classes(5, 4, scale=8.0, margin=0.3).double()
    cosines = functional.cosine_similarity(e[:, None], objective.weight, dim=-1)
    right = cosines[torch.arange(8), some.labels] - 0.3
    others = [torch.cat([row[:own], row[own + 1 :]]) for row, own in zip(cosines, LABELS, strict=True)]
    rivals = torch.stack([(8 * row).exp().sum() for row in others])
    assert_close(objective(e, some), -((8 * right).exp() / ((8 * right).exp() + rivals)).log().mean())


@pytest.mark.parametrize(
    "make", [lambda seed: SemiHard(margin=2.0, choose="random", seed=seed), lambda seed: RandomTriplets(seed=seed)]
)
def test_chance_follows_from_seed_and_step(make) -> None:
    labels = [0, 0, 0, 0, *range(1, 40)]
    e = embeddings(labels)
    losses = [[float(make(seed)(e, batch(labels, step=step))) for step in (0, 1)] for seed in (0, 1)]
    assert len({loss for row in losses for loss in row}) == 4
    assert losses[1] == [float(make(1)(e, batch(labels, step=step))) for step in (0, 1)]


def test_random_triplets_take_every_pair_and_any_negative() -> None:
    labels = torch.tensor([0, 1, 0, 2, 1])
    seen = set()
    for step in range(100):
        triplets = random_triplets(labels, seed=1, step=step)
        pairs = list(zip(triplets.anchor.tolist(), triplets.positive.tolist(), strict=True))
        assert pairs == [(0, 2), (1, 4), (2, 0), (4, 1)]
        seen |= set(zip(triplets.anchor.tolist(), triplets.negative.tolist(), strict=True))
    assert seen == {(a, n) for a in (0, 1, 2, 4) for n in range(5) if labels[a] != labels[n]}
    assert all(not len(rows) for rows in random_triplets(torch.tensor([5, 5, 5]), seed=1, step=0))


@pytest.mark.parametrize("objective", [SemiHard(), Hardest(), RandomTriplets(), EveryTriplet(), Classes(5, 40)])
def test_every_objective_has_a_number_and_a_gradient_for_any_batch(objective: Objective) -> None:
    for labels in ([], [1], [1, 1], [1, 2], LABELS):
        e = embeddings(labels).float().requires_grad_()
        loss = objective(e, batch(labels))
        assert loss.isfinite()
        loss.backward()
        assert e.grad is not None
        assert e.grad.isfinite().all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SemiHard(choose="close"), "SemiHard: choose must be one of 'closest', 'random'; got 'close'"),
        (lambda: SemiHard(fallback="none"), "SemiHard: fallback must be one of 'skip', 'farthest', 'hardest'"),
        (lambda: SemiHard(seed=-1), "SemiHard: seed must be a whole number of at least 0; got -1"),
        (lambda: RandomTriplets(seed=-1), "RandomTriplets: seed must be a whole number of at least 0; got -1"),
        (lambda: Classes(0, 3), "Classes: embedding_dim must be a whole number of at least 1; got 0"),
        (lambda: Classes(3, 0), "Classes: num_classes must be a whole number of at least 1; got 0"),
        (lambda: Classes(3, 3, scale=0.0), "Classes: scale must be positive; got 0.0"),
        (lambda: Classes(3, 3, margin=2.0), "Classes: margin must be from 0 to below 2, .*; got 2.0"),
    ],
)
def test_wrong_arguments_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
