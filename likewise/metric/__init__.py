"""Metric learning: embeddings and labels in, losses and rates out."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.metric", "torch")

from likewise.metric.all_pairs import all_pairs
from likewise.metric.batch_all import batch_all_loss
from likewise.metric.bootstrap import bootstrap_threshold
from likewise.metric.clusters import Clusters, ClusterScores, cluster, cluster_scores
from likewise.metric.collapse import CollapseError
from likewise.metric.harmonic import harmonic_loss
from likewise.metric.mining import batch_hard, semi_hard_negatives
from likewise.metric.rates import FewImpostorsWarning, Fold, threshold_for, verification
from likewise.metric.sampler import IdentitySampler
from likewise.metric.templates import quantised, restored
from likewise.metric.triplet import Triplets, triplet_loss
from likewise.metric.two_covariance import two_covariance
from likewise.metric.versions import Versions, compare_versions
from likewise.stats import clopper_pearson

__all__ = [
    "ClusterScores",
    "Clusters",
    "CollapseError",
    "FewImpostorsWarning",
    "Fold",
    "IdentitySampler",
    "Triplets",
    "Versions",
    "all_pairs",
    "batch_all_loss",
    "batch_hard",
    "bootstrap_threshold",
    "clopper_pearson",
    "cluster",
    "cluster_scores",
    "compare_versions",
    "harmonic_loss",
    "quantised",
    "restored",
    "semi_hard_negatives",
    "threshold_for",
    "triplet_loss",
    "two_covariance",
    "verification",
]
