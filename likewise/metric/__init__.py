"""Metric learning: embeddings and labels in, losses and rates out."""

from likewise.metric.batch_all import batch_all_loss
from likewise.metric.mining import Shares, batch_hard, negative_shares, semi_hard_negatives
from likewise.metric.triplet import Triplets, triplet_loss

__all__ = [
    "Shares",
    "Triplets",
    "batch_all_loss",
    "batch_hard",
    "negative_shares",
    "semi_hard_negatives",
    "triplet_loss",
]
