"""Heads, temperatures and the criteria that learn something: each from the split that is for it."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from likewise.checks import require, require_choice, require_count
from likewise.data import Batch
from likewise.exits.criteria import ClassMeans, Neighbours, PredictedDepth
from likewise.exits.early import EarlyExit, evaluating
from likewise.exits.observing import SIZE
from likewise.exits.splits import Fed, Split
from likewise.training import CheckpointPolicy, Feed, Record, Schedule, train
from likewise.training.loop import Trained

LEAST_TEMPERATURE, MOST_TEMPERATURE = 1e-3, 1e3


class ExitLoss(nn.Module):
    """L = sum_i w_i CE_i / sum_i w_i over exits, from logits (B, exits * C) in a row.

    Paper: BranchyNet, arXiv 1709.01686, section 3.1. Differs: divided by the sum, so that weights change no rate.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        rule = "be 0 or more, and one above"
        require(min(weights) >= 0 < max(weights), "ExitLoss", "weights", rule, list(weights))
        self.weights = [weight / sum(weights) for weight in weights]

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        logits = embeddings.chunk(len(self.weights), dim=1)
        losses = [functional.cross_entropy(each, batch.labels.to(each.device)) for each in logits]
        return torch.stack([weight * loss for weight, loss in zip(self.weights, losses, strict=True)]).sum()


class _Jointly(nn.Module):
    """All logits in a row."""

    def __init__(self, exits: EarlyExit) -> None:
        super().__init__()
        self.exits = exits

    def forward(self, x: Tensor) -> Float[Tensor, "B E"]:
        return self.exits(x).flatten(1)


class _HeadsOnly(nn.Module):
    """The logits of the heads in a row; the body is no part of it, and so cannot be trained."""

    def __init__(self, exits: EarlyExit) -> None:
        super().__init__()
        self.heads, self.body = exits.heads, (exits,)

    def forward(self, x: Tensor) -> Float[Tensor, "B E"]:
        (exits,) = self.body
        at, logits = dict(zip(exits.places, self.heads, strict=True)), []
        for number, segment in enumerate(exits.segments[: exits.places[-1] + 1]):
            with torch.no_grad():
                x = segment(x)
            if number in at:
                logits.append(at[number](x)[1])
        return torch.cat(logits, dim=1)


def train_exits(
    exits: EarlyExit,
    data: Split | Feed,
    *,
    steps: int,
    body: Literal["frozen", "joint"] = "frozen",
    weights: Sequence[float] | None = None,
    schedule: Schedule | None = None,
    keep: CheckpointPolicy | None = None,
    resume: bool = False,
    seed: int = 0,
    watch: Callable[[Record], bool | None] | None = None,
) -> Trained:
    """Train the heads, in place, by `likewise.training.train`; temperatures start again at 1, and all ends in eval.

    body: "frozen", in evaluation mode and without gradients, so that its answers stay bit for bit what they were; or
    "joint", trained with the heads. weights: of the loss at each exit, the end included if it is trained; 1 each unless
    given. data: for training; a feed that is not of a split is not noted in `exits.ledger`.
    """
    require_choice("train_exits", "body", body, ("frozen", "joint"))
    feed = data.feed(seed=seed) if isinstance(data, Split) else data
    if isinstance(feed, Fed):
        exits.ledger.take("train_exits", feed.split, roles=("train",))
    count = len(exits.heads) + (body == "joint")
    weights = [1.0] * count if weights is None else weights
    require(len(weights) == count, "train_exits", "weights", f"be one for each of {count} exits", len(weights))
    for temperature in exits.temperatures:
        temperature.fill_(1)
    network = _Jointly(exits) if body == "joint" else _HeadsOnly(exits)
    with evaluating(exits.network):  # for the frozen body; the joint one is put in training mode by `train`
        trained = train(
            network,
            ExitLoss(weights),
            feed,
            steps=steps,
            schedule=schedule,
            keep=keep,
            resume=resume,
            seed=seed,
            watch=watch,
        )
    exits.eval()
    return trained


def fit_temperatures(exits: EarlyExit, data: Split) -> tuple[float, ...]:
    """Divide each head's logits by the temperature with the least cross-entropy on a selection split; classes stay.

    Paper: On Calibration of Modern Neural Networks, arXiv 1706.04599, section 4.2.
    """
    exits.ledger.take("fit_temperatures", data, roles=("selection",))
    for temperature in exits.temperatures:
        temperature.fill_(1)
    _, logits = _features_and_logits(exits, data)
    found = tuple(best_temperature(logits[:, head], data.labels) for head in range(len(exits.heads)))
    for temperature, value in zip(exits.temperatures, found, strict=True):
        temperature.fill_(value)
    return found


def best_temperature(logits: Float[Tensor, "N C"], labels: Int64[Tensor, "N"]) -> float:
    """The T that minimises the cross-entropy of logits / T, by bisection in 1 / T, of which it is a convex function.

    Its derivative there is the mean of sum_c p_c z_c - z_label. Where it has no root, T is 0.001 or 1000.

    >>> three_of_four = torch.tensor([0, 0, 0, 1])  # p = 3/4 where z / T = log 3
    >>> round(best_temperature(torch.tensor([[1.0, 0.0]]).repeat(4, 1), three_of_four), 4)
    0.9102
    """
    z = logits.double()
    own = z.gather(1, labels[:, None])[:, 0]
    low, high = 1 / MOST_TEMPERATURE, 1 / LEAST_TEMPERATURE
    while (middle := (low * high) ** 0.5) not in (low, high):
        slope = (((z * middle).softmax(1) * z).sum(1) - own).mean()
        low, high = (middle, high) if slope < 0 else (low, middle)
    return 1 / middle


def fit_neighbours(exits: EarlyExit, data: Split, *, k: int = 10, most: int = 2000, seed: int = 0) -> Neighbours:
    """The criterion that asks the k nearest of at most `most` training examples, drawn by a seed."""
    require_count("fit_neighbours", "most", most)
    exits.ledger.take("fit_neighbours", data, roles=("train",))
    chosen = torch.randperm(len(data), generator=torch.Generator().manual_seed(seed))[:most].sort().values
    stored = data.take(chosen)
    return Neighbours(tuple(_features_and_logits(exits, stored)[0]), stored.labels, k=k)


def fit_class_means(exits: EarlyExit, data: Split) -> ClassMeans:
    """The criterion that compares with the mean features of each class of a training split."""
    exits.ledger.take("fit_class_means", data, roles=("train",))
    counts = data.labels.bincount(minlength=exits.num_classes)
    require(int(counts.min()) > 0, "fit_class_means", "data", "have examples of every class", counts.tolist())
    means = []
    for features in _features_and_logits(exits, data)[0]:
        sums = torch.zeros(exits.num_classes, features.shape[1], dtype=torch.float64)
        means.append((sums.index_add_(0, data.labels, features.double()) / counts[:, None]).to(features.dtype))
    return ClassMeans(tuple(means))


def fit_predicted_depth(
    exits: EarlyExit, data: Split, depths: Int64[Tensor, "N"], *, ridge: float = 1e-3
) -> PredictedDepth:
    """The criterion that predicts prediction depth from a head's features: least squares, one regression per head.

    ridge: added to the variance of every direction, as a share of the mean variance.
    """
    exits.ledger.take("fit_predicted_depth", data, roles=("train", "selection"))
    same = len(depths) == len(data)
    require(same, "fit_predicted_depth", "depths", f"be one for each of {len(data)} examples", len(depths))
    require(ridge > 0, "fit_predicted_depth", "ridge", "be positive", ridge)
    weights, biases = [], []
    for features in _features_and_logits(exits, data)[0]:
        x, y = features.double(), depths.double()
        centre, mean = x.mean(0), y.mean()
        covariance = (x - centre).mT @ (x - centre) / len(x)
        extra = ridge * covariance.diagonal().mean().clamp(min=1e-12)
        solved = torch.linalg.solve(
            covariance + extra * torch.eye(len(covariance)), (x - centre).mT @ (y - mean) / len(x)
        )
        weights.append(solved.to(features.dtype))
        biases.append((mean - centre @ solved).item())
    return PredictedDepth(tuple(weights), tuple(biases))


def _features_and_logits(exits: EarlyExit, data: Split) -> tuple[list[Tensor], Float[Tensor, "N exits C"]]:
    """Of all examples, in evaluation mode."""
    require(len(data) > 0, "EarlyExit", "data", "not be empty", 0)
    found = []
    with torch.no_grad(), evaluating(exits):
        for inputs, _ in data.batches(SIZE):
            features, logits = exits.features_and_logits(inputs.to(exits.device))
            found.append(([each.cpu() for each in features], logits.cpu()))
    features = [torch.cat([batch[0][head] for batch in found]) for head in range(len(exits.heads))]
    return features, torch.cat([batch[1] for batch in found])
