"""Metric learning: embeddings and labels in, losses and rates out."""

from likewise.metric.all_pairs import AllPairs, all_pairs
from likewise.metric.batch_all import batch_all_loss
from likewise.metric.cluster import ClusterScores, cluster, cluster_scores
from likewise.metric.collapse import Collapse, CollapseError, CollapseGuard, collapse
from likewise.metric.harmonic import harmonic_loss
from likewise.metric.mining import Shares, batch_hard, negative_shares, semi_hard_negatives
from likewise.metric.rates import (
    FewImpostorsWarning,
    Roc,
    Threshold,
    Verification,
    clopper_pearson,
    mean_and_error,
    threshold_for,
    tightened,
    verification,
)
from likewise.metric.sampler import IdentitySampler
from likewise.metric.triplet import Triplets, triplet_loss
from likewise.metric.two_covariance import TwoCovariance, two_covariance

__all__ = [
    "AllPairs",
    "ClusterScores",
    "Collapse",
    "CollapseError",
    "CollapseGuard",
    "FewImpostorsWarning",
    "IdentitySampler",
    "Roc",
    "Shares",
    "Threshold",
    "Triplets",
    "TwoCovariance",
    "Verification",
    "all_pairs",
    "batch_all_loss",
    "batch_hard",
    "clopper_pearson",
    "cluster",
    "cluster_scores",
    "collapse",
    "harmonic_loss",
    "mean_and_error",
    "negative_shares",
    "semi_hard_negatives",
    "threshold_for",
    "tightened",
    "triplet_loss",
    "two_covariance",
    "verification",
]
