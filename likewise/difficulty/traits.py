"""What examples have in common, and how that goes with their depth."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Float64
from torch import Tensor

from likewise.checks import require
from likewise.difficulty.consistency import spearman
from likewise.difficulty.labelled import Labelled
from likewise.similarity import squared_distances


class RankCorrelation(NamedTuple):
    """Spearman's correlation with its interval; NaN where it is not defined."""

    value: float
    low: float
    high: float
    count: int


def rank_correlation(x: Float64[Tensor, "N"], y: Float64[Tensor, "N"], *, confidence: float = 0.95) -> RankCorrelation:
    """Spearman's r, and tanh(atanh r +- z sqrt((1 + r^2 / 2) / (N - 3))), which ties make approximate.

    >>> x, y = torch.tensor([[1.0, 2.0, 4.0, 8.0], [1.0, 3.0, 2.0, 4.0]]).double()
    >>> found = rank_correlation(x, y)
    >>> round(found.value, 6), found.count
    (0.8, 4)

    Paper: Bonett and Wright, Sample size requirements for estimating Pearson, Kendall and Spearman correlations, 2000.
    """
    require(0 < confidence < 1, "rank_correlation", "confidence", "be between 0 and 1", confidence)
    value, count = spearman(torch.stack([x, y])), len(x)
    if math.isnan(value) or count < 4:
        return RankCorrelation(value, math.nan, math.nan, count)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt((1 + value**2 / 2) / (count - 3))
    middle = math.atanh(max(-1 + 1e-15, min(1 - 1e-15, value)))
    return RankCorrelation(value, math.tanh(middle - half), math.tanh(middle + half), count)


def input_traits(train: Labelled, some: Labelled) -> dict[str, Float64[Tensor, "N"]]:
    """What can be said of examples from their inputs and labels alone, by name.

    contrast: the standard deviation of an input's numbers. rarity: the distance to the mean training example of its
    class. overlap: that distance over the one to the nearest mean of another class; above 1 it lies nearer to the
    other. class size: training examples of its class, if classes differ in that.

    >>> from likewise.difficulty.labelled import labelled
    >>> train = labelled((torch.tensor([[0.0, 0.0], [0.0, 2.0], [4.0, 1.0]]), torch.tensor([0, 0, 1])))
    >>> found = input_traits(train, labelled((torch.tensor([[1.0, 1.0]]), torch.tensor([0]))))
    >>> {name: round(values.item(), 3) for name, values in found.items()}
    {'contrast': 0.0, 'rarity': 1.0, 'overlap': 0.333, 'class size': 2.0}
    """
    classes = 1 + int(torch.cat([train.labels, some.labels]).max())
    sums, done = None, 0
    for inputs in train.batches():
        rows = inputs.flatten(1).double().cpu()
        sums = torch.zeros(classes, rows.shape[1], dtype=torch.float64) if sums is None else sums
        sums.index_add_(0, train.labels[done : done + len(rows)], rows)
        done += len(rows)
    assert sums is not None
    counts = train.labels.bincount(minlength=classes).double()
    means, known = sums / counts[:, None], counts > 0
    found: dict[str, list[Tensor]] = {"contrast": [], "rarity": [], "overlap": []}
    done = 0
    for inputs in some.batches():
        rows = inputs.flatten(1).double().cpu()
        labels = some.labels[done : done + len(rows)]
        distances = squared_distances(rows, means.nan_to_num()).sqrt()
        own = distances.gather(1, labels[:, None])[:, 0].masked_fill(~known[labels], torch.nan)
        others = distances.masked_fill(~known, torch.inf).scatter(1, labels[:, None], torch.inf).amin(dim=1)
        found["contrast"].append(rows.std(dim=1, correction=0))
        found["rarity"].append(own)
        found["overlap"].append(own / others)
        done += len(rows)
    traits = {name: torch.cat(values) for name, values in found.items()}
    if len(counts[known].unique()) > 1:
        traits["class size"] = counts[some.labels]
    return traits
