"""Rank labels by how suspicious they are, from class probabilities of models that were not trained on the examples."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from likewise.checks import require
from likewise.difficulty.activations import device_of, require_evaluation
from likewise.difficulty.labelled import Labelled

UNIT = 1e-3  # how far a row of probabilities may be from a sum of 1


@dataclass(frozen=True, eq=False)
class LabelRanking:
    """The labels of N examples, ranked.

    score: 1 - p(label), in [0, 1]; the higher, the more suspicious. suggested: the most probable class. flagged: where
    another class is probable by the standard of that class, see `rank_labels`.
    """

    score: Float64[Tensor, "N"]
    suggested: Int64[Tensor, "N"]
    flagged: Bool[Tensor, "N"]

    def __repr__(self) -> str:
        return f"LabelRanking({len(self.score):,} labels, {int(self.flagged.sum()):,} flagged)"

    @property
    def order(self) -> Int64[Tensor, "N"]:
        """Rows, the most suspicious label first; of equal scores the first row first."""
        return self.score.argsort(descending=True, stable=True)


def rank_labels(probabilities: Float[Tensor, "N C"], labels: Int64[Tensor, "N"]) -> LabelRanking:
    """Rank labels by 1 - p(label), and flag those that probably should be another class.

    probabilities: of each class, from a model that was not trained on the example, such as in cross-validation. A class
    j is confident for an example if p(j) is at least t(j), the mean p(j) of the examples labelled j. A label is flagged
    if the most probable confident class is another one.

    >>> p = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.7, 0.3], [0.2, 0.8]])
    >>> ranking = rank_labels(p, torch.tensor([0, 0, 1, 1, 1]))
    >>> ranking.order.tolist(), ranking.flagged.tolist()  # t = 0.85, 0.667: 0.7 is not confident in class 0
    ([3, 1, 4, 0, 2], [False, False, False, False, False])
    >>> rank_labels(p, torch.tensor([0, 0, 1, 1, 0])).flagged.tolist()  # t = 0.633, 0.6
    [False, False, False, True, True]

    Paper: Northcutt, Jiang and Chuang, arXiv 1911.00068: self-confidence as the score, confident learning as the flag.
    """
    where = "rank_labels"
    fits = probabilities.ndim == 2 and labels.ndim == 1 and len(probabilities) == len(labels) > 0
    got = f"{tuple(probabilities.shape)} and {tuple(labels.shape)}"
    require(fits, where, "probabilities", "be (N, C) for labels (N,), N at least 1", got)
    classes = probabilities.shape[1]
    known = int(labels.min()) >= 0 and int(labels.max()) < classes
    require(known, where, "labels", f"be from 0 to {classes - 1}", f"{int(labels.min())} to {int(labels.max())}")
    p = probabilities.detach().cpu().double()
    labels = labels.cpu()
    sums = bool(((p.sum(1) - 1).abs() <= UNIT).all() and (p >= 0).all())
    require(
        sums, where, "probabilities", "be at least 0 and sum to 1 in each row", "others", "Take a softmax of logits."
    )
    own = p.gather(1, labels[:, None])[:, 0]
    counts = labels.bincount(minlength=classes)
    sums_of_own = torch.zeros(classes, dtype=torch.float64).scatter_add_(0, labels, own)
    thresholds = (sums_of_own / counts).masked_fill(counts == 0, torch.inf)  # a class without labels is never confident
    confident = p >= thresholds
    best = p.masked_fill(~confident, -torch.inf).argmax(1)
    return LabelRanking(1 - own, p.argmax(1), confident.any(1) & (best != labels))


def class_probabilities(model: nn.Module, data: Labelled) -> Float64[Tensor, "N C"]:
    """The softmax of a model's logits for every example, in order."""
    require_evaluation("class_probabilities", model)
    with torch.no_grad():
        logits = [model(inputs.to(device_of(model))).double().cpu() for inputs in data.batches()]
    return torch.cat(logits).softmax(1)
