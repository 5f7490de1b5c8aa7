"""Losses and miners of pytorch-metric-learning in our training, and ours in theirs."""

import pytest
import torch
from pytorch_metric_learning import losses, miners
from torch import Tensor

from likewise.data import Batch
from likewise.metric import semi_hard_negatives, triplet_loss
from likewise.training import MetricLoss
from tests.tolerance import assert_close

MARGIN = 0.2


def batch_of() -> tuple[Tensor, Batch]:
    generator = torch.Generator().manual_seed(3)
    embeddings = torch.nn.functional.normalize(torch.randn(20, 7, generator=generator), dim=-1).requires_grad_()
    labels = torch.arange(20) % 4
    return embeddings, Batch(images=torch.zeros(20, 1, 1, 1), labels=labels, rows=torch.arange(20), step=0)


def test_our_triplets_in_their_loss_are_our_loss() -> None:
    embeddings, batch = batch_of()
    theirs = losses.TripletMarginLoss(margin=MARGIN, distance=_squared())
    found = MetricLoss(theirs, semi_hard_negatives)(embeddings, batch)
    triplets = semi_hard_negatives(embeddings, batch.labels)
    assert len(triplets.anchor) > 0
    assert_close(found, triplet_loss(embeddings, triplets, margin=MARGIN, reduction="mean"))


def test_their_loss_and_miner_give_what_they_give_alone() -> None:
    embeddings, batch = batch_of()
    loss, miner = losses.MultiSimilarityLoss(), miners.MultiSimilarityMiner()
    found = MetricLoss(loss, miner)(embeddings, batch)
    assert_close(found, loss(embeddings, batch.labels, miner(embeddings, batch.labels)))
    (gradient,) = torch.autograd.grad(found, embeddings)
    assert gradient.abs().sum() > 0


def test_the_weights_of_their_loss_are_trained() -> None:
    embeddings, batch = batch_of()
    objective = MetricLoss(losses.ArcFaceLoss(num_classes=4, embedding_size=7))
    assert [tuple(parameter.shape) for parameter in objective.parameters()] == [(7, 4)]
    objective(embeddings, batch).backward()
    assert all(parameter.grad is not None for parameter in objective.parameters())
    assert "mean_distance" in objective.measure(embeddings, batch)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_is_no_loss_is_refused() -> None:
    with pytest.raises(ValueError, match=r"MetricLoss: loss must be callable; got 3"):
        MetricLoss(3)  # ty: ignore[invalid-argument-type]


def _squared() -> object:
    from pytorch_metric_learning.distances import LpDistance

    return LpDistance(power=2)
