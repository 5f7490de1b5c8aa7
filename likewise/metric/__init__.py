"""Metric learning: embeddings and labels in, losses and rates out."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.metric", "torch")

from likewise.metric.all_pairs import AllPairs, all_pairs
from likewise.metric.batch_all import batch_all_loss
from likewise.metric.bootstrap import Bootstrapped, bootstrap_threshold
from likewise.metric.cluster import ClusterScores, cluster, cluster_scores
from likewise.metric.collapse import Collapse, CollapseError, CollapseGuard, collapse
from likewise.metric.harmonic import harmonic_loss
from likewise.metric.mining import Shares, batch_hard, negative_shares, semi_hard_negatives
from likewise.metric.rates import (
    FewImpostorsWarning,
    Fold,
    Roc,
    Threshold,
    Verification,
    threshold_for,
    tightened,
    verification,
)
from likewise.metric.sampler import IdentitySampler
from likewise.metric.surveying import Extremes, Survey, shares_at, survey
from likewise.metric.templates import quantised, restored, template_distances
from likewise.metric.triplet import Triplets, triplet_loss
from likewise.metric.two_covariance import TwoCovariance, two_covariance
from likewise.metric.versions import Match, Versions, compare_versions
from likewise.stats import clopper_pearson, mean_and_error

__all__ = [
    "AllPairs",
    "Bootstrapped",
    "ClusterScores",
    "Collapse",
    "CollapseError",
    "CollapseGuard",
    "Extremes",
    "FewImpostorsWarning",
    "Fold",
    "IdentitySampler",
    "Match",
    "Roc",
    "Shares",
    "Survey",
    "Threshold",
    "Triplets",
    "TwoCovariance",
    "Verification",
    "Versions",
    "all_pairs",
    "batch_all_loss",
    "batch_hard",
    "bootstrap_threshold",
    "clopper_pearson",
    "cluster",
    "cluster_scores",
    "collapse",
    "compare_versions",
    "harmonic_loss",
    "mean_and_error",
    "negative_shares",
    "quantised",
    "restored",
    "semi_hard_negatives",
    "shares_at",
    "survey",
    "template_distances",
    "threshold_for",
    "tightened",
    "triplet_loss",
    "two_covariance",
    "verification",
]
