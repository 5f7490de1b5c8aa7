"""What examples have in common, and how that goes with their depth."""

import math
from statistics import NormalDist
from typing import NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor, nn

from likewise.checks import require, require_count
from likewise.difficulty.activations import device_of, require_evaluation
from likewise.difficulty.consistency import spearman
from likewise.difficulty.labelled import BATCH, Labelled
from likewise.similarity import squared_distances


def output_margin(logits: Float[Tensor, "N C"]) -> Float[Tensor, "N"]:
    """The largest logit minus the second largest.

    >>> output_margin(torch.tensor([[1.0, 4.0, 2.0]]))
    tensor([2.])
    """
    require(logits.shape[-1] > 1, "output_margin", "logits", "be of two classes or more", logits.shape[-1])
    first, second = logits.topk(2, dim=1).values.unbind(1)
    return first - second


def input_margin(model: nn.Module, x: Float[Tensor, "N *input"], *, batch: int = BATCH) -> Float[Tensor, "N"]:
    """min over j != i of (z_i - z_j) / |grad_x (z_i - z_j)|: the distance to another class than i, to first order.

    i is the predicted class. Where no logit depends on x the margin is infinite; on a boundary it is 0. One backward
    pass for each class; for a linear model it is the distance itself.

    >>> model = nn.Linear(2, 2, bias=False).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[3.0, 0.0], [0.0, 4.0]])})
    >>> input_margin(model, torch.tensor([[5.0, 0.0]]))  # 15 over the length of (3, -4)
    tensor([3.])

    Paper: Jiang et al., arXiv 1810.00113; beside depth in Baldock et al., arXiv 2106.09647.
    """
    where = "input_margin"
    require_evaluation(where, model)
    require_count(where, "batch", batch)
    found = [torch.zeros(0, dtype=x.dtype)]
    for part in x.split(batch):
        inputs = part.detach().to(device_of(model)).requires_grad_()
        with torch.enable_grad():
            logits = model(inputs)
            require(logits.shape[-1] > 1, where, "model", "have two classes or more", logits.shape[-1])
            best, predicted = logits.max(dim=1, keepdim=True)
            least = torch.full_like(best[:, 0], torch.inf)
            for other in range(logits.shape[1]):
                gap = best[:, 0] - logits[:, other]
                (slope,) = torch.autograd.grad(gap.sum(), inputs, retain_graph=True)
                margin = gap.detach() / slope.flatten(1).norm(dim=1)
                margin = margin.masked_fill(gap == 0, 0.0).masked_fill(predicted[:, 0] == other, torch.inf)
                least = torch.minimum(least.detach(), margin)
        found.append(least.cpu())
    return torch.cat(found)


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


def input_traits(train: Labelled, examples: Labelled) -> dict[str, Float64[Tensor, "N"]]:
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
    classes = 1 + int(torch.cat([train.labels, examples.labels]).max())
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
    for inputs in examples.batches():
        rows = inputs.flatten(1).double().cpu()
        labels = examples.labels[done : done + len(rows)]
        distances = squared_distances(rows, means.nan_to_num()).sqrt()
        own = distances.gather(1, labels[:, None])[:, 0].masked_fill(~known[labels], torch.nan)
        others = distances.masked_fill(~known, torch.inf).scatter(1, labels[:, None], torch.inf).amin(dim=1)
        found["contrast"].append(rows.std(dim=1, correction=0))
        found["rarity"].append(own)
        found["overlap"].append(own / others)
        done += len(rows)
    traits = {name: torch.cat(values) for name, values in found.items()}
    if len(counts[known].unique()) > 1:
        traits["class size"] = counts[examples.labels]
    return traits
