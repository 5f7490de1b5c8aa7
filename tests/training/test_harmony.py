"""Old vectors stay; a batch meets those of its own images, or of its own people."""

import pytest
import torch
from torch.nn import functional

from likewise.metric import CollapseError, harmonic_loss
from likewise.metric.collapse import CollapseGuard
from likewise.training import Cosine, Harmonic, train
from tests.tolerance import assert_close
from tests.training.problems import batch, feed, small

LABELS = [0, 1, 0, 2, 1, 0]


def vectors(count: int, seed: int) -> torch.Tensor:
    return functional.normalize(torch.randn(count, 7, generator=torch.Generator().manual_seed(seed)).double())


def test_a_batch_meets_the_old_vectors_of_its_own_images() -> None:
    some, new, old = batch(LABELS), vectors(6, 1), vectors(6, 2)
    objective = Harmonic(old[torch.tensor([5, 4, 3, 2, 1, 0])], some.labels.flip(0), rows=torch.arange(5, -1, -1))
    expected = harmonic_loss(new, old, some.labels, reduction="mean", fallback="farthest")
    assert expected > 0
    assert_close(objective(new, some), expected)
    partly = Harmonic(old[:4], some.labels[:4], rows=torch.tensor([0, 1, 2, 3, -1, -1]))
    expected = harmonic_loss(
        new, old[:4], some.labels, old_labels=some.labels[:4], reduction="mean", fallback="farthest"
    )
    assert_close(partly(new, some), expected)


def test_stored_vectors_of_the_batchs_people_are_enough() -> None:
    some, new, old = batch(LABELS), vectors(6, 1), vectors(9, 2)
    labels = torch.tensor([9, 0, 1, 2, 2, 9, 0, 8, 1])
    known = torch.tensor([1, 2, 3, 4, 6, 8])
    expected = harmonic_loss(
        new, old[known], some.labels, old_labels=labels[known], reduction="mean", fallback="farthest"
    )
    assert_close(Harmonic(old, labels)(new, some), expected)
    few = Harmonic(old, labels, most=3)
    assert len({float(few(new, batch(LABELS, step=step))) for step in range(9)}) > 1
    assert float(few(new, batch(LABELS, step=4))) == float(few(new, batch(LABELS, step=4)))


def test_the_fingerprint_is_of_all_that_matters() -> None:
    old, labels = vectors(3, 1), torch.tensor([0, 1, 2])
    made = [
        Harmonic(old, labels),
        Harmonic(old.nextafter(old + 1), labels),
        Harmonic(old, labels + 1),
        Harmonic(old, labels, rows=torch.arange(3)),
        Harmonic(old, labels, margin=0.3),
        Harmonic(old, labels, seed=1),
    ]
    assert len({objective.fingerprint for objective in made}) == 6
    assert Harmonic(old.clone(), labels).fingerprint == made[0].fingerprint


@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_labels_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Harmonic: labels must have one entry for each of 3 vectors; got \(2,\)"):
        Harmonic(vectors(3, 1), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="Harmonic: most must be a whole number of at least 1; got 0"):
        Harmonic(vectors(3, 1), torch.tensor([0, 1, 2]), most=0)


def test_a_collapse_stops_the_run_with_its_evidence() -> None:
    class Point(torch.nn.Module):
        def forward(self, embeddings: torch.Tensor, batch: object) -> torch.Tensor:
            return (embeddings - 1).square().sum()

    guard = CollapseGuard(patience=3)
    network = small()
    torch.nn.init.zeros_(network.get_parameter("5.weight"))
    with pytest.raises(CollapseError, match="for 3 batches in a row") as stopped:
        train(network, Point(), feed(), steps=9, schedule=Cosine(peak=1e-6), guard=guard)
    assert len(stopped.value.evidence) == 3
