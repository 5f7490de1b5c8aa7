"""What a network is trained for: embeddings of a batch in, one number to lower out.

An objective is a module, so that what it learns besides the network (the weights of classes) is trained and stored with
it; whatever it draws by chance it draws from the batch's step, so that a resumed run draws alike. What is worth logging
of a step, it measures itself.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional

from likewise.checks import require, require_choice, require_count
from likewise.data import Batch
from likewise.metric import Triplets, batch_all_loss, batch_hard, harmonic_loss, semi_hard_negatives, triplet_loss
from likewise.metric.collapse import collapse
from likewise.metric.mining import negative_shares
from likewise.metric.triplet import require_margin

MARGIN = 0.2  # of the shares in the log, so that runs with other margins compare


@runtime_checkable
class Objective(Protocol):
    """A module: objective(embeddings, batch) -> the loss."""

    def __call__(self, embeddings: Tensor, batch: Batch) -> Tensor: ...


@runtime_checkable
class Measuring(Protocol):
    """An objective with measurements of its own: measure(embeddings, batch) -> numbers for the log, by name."""

    def measure(self, embeddings: Tensor, batch: Batch) -> dict[str, float]: ...


class TripletObjective(nn.Module):
    """A loss over triplets. It measures how hard the batch's triplets are, and how far its embeddings are spread.

    hard, semi_hard, easy: shares of all triplets of the batch, at a margin of 0.2. mean_distance: the mean squared
    distance of two embeddings, about 2 when they are spread and 0 when they have collapsed. effective_rank: in how many
    directions they vary.
    """

    def measure(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> dict[str, float]:
        shares = negative_shares(embeddings, batch.labels.to(embeddings.device), margin=MARGIN)
        return {"hard": shares.hard, "semi_hard": shares.semi_hard, "easy": shares.easy, **spread(embeddings)}


class SemiHard(TripletObjective):
    """The triplet loss over one semi-hard negative for each pair of an anchor and a positive.

    choose, fallback: as in `likewise.metric.semi_hard_negatives`. The loss is the mean over triplets above 0: their
    number varies from batch to batch, and with it the paper's sum.

    Paper: FaceNet, arXiv 1503.03832, section 3.2.
    """

    def __init__(self, *, margin: float = 0.2, choose: str = "closest", fallback: str = "skip", seed: int = 0) -> None:
        super().__init__()
        require_margin("SemiHard", margin)
        require_choice("SemiHard", "choose", choose, ("closest", "random"))
        require_choice("SemiHard", "fallback", fallback, ("skip", "farthest", "hardest"))
        require_count("SemiHard", "seed", seed, least=0)
        self.margin, self.choose, self.fallback, self.seed = margin, choose, fallback, seed

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        triplets = semi_hard_negatives(
            embeddings,
            batch.labels,
            margin=self.margin,
            choose=self.choose,  # ty: ignore[invalid-argument-type]
            fallback=self.fallback,  # ty: ignore[invalid-argument-type]
            generator=drawn(self.seed, batch.step),
        )
        return triplet_loss(embeddings, triplets, margin=self.margin, reduction="mean")


class Hardest(TripletObjective):
    """The triplet loss over the farthest positive and the closest negative of each anchor, which may collapse.

    Paper: In Defense of the Triplet Loss, arXiv 1703.07737, equation 5.
    """

    def __init__(self, *, margin: float = 0.2) -> None:
        super().__init__()
        require_margin(type(self).__name__, margin)
        self.margin = margin

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        triplets = batch_hard(embeddings, batch.labels)
        return triplet_loss(embeddings, triplets, margin=self.margin, reduction="mean")


class RandomTriplets(TripletObjective):
    """The triplet loss over one negative by chance for each pair of an anchor and a positive: no mining at all."""

    def __init__(self, *, margin: float = 0.2, seed: int = 0) -> None:
        super().__init__()
        require_margin("RandomTriplets", margin)
        require_count("RandomTriplets", "seed", seed, least=0)
        self.margin, self.seed = margin, seed

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        triplets = random_triplets(batch.labels, seed=self.seed, step=batch.step)
        return triplet_loss(embeddings, triplets, margin=self.margin, reduction="mean")


class EveryTriplet(TripletObjective):
    """The triplet loss over every triplet of the batch, the mean over those above 0."""

    def __init__(self, *, margin: float = 0.2) -> None:
        super().__init__()
        require_margin(type(self).__name__, margin)
        self.margin = margin

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        return batch_all_loss(embeddings, batch.labels, margin=self.margin, reduction="mean")


class MetricLoss(TripletObjective):
    """Any loss of (embeddings, labels), as pytorch-metric-learning has them, over what a miner chooses.

    miner(embeddings, labels) gives the loss its third argument: one of theirs, or `semi_hard_negatives`, whose triplets
    are the tuple of indices that their losses take. Weights of the loss are trained and stored with the network.

        MetricLoss(losses.MultiSimilarityLoss(), miners.MultiSimilarityMiner())
        MetricLoss(losses.TripletMarginLoss(), semi_hard_negatives)
    """

    def __init__(self, loss: Callable[..., Tensor], miner: Callable[..., Any] | None = None) -> None:
        super().__init__()
        for name, value in (("loss", loss), ("miner", miner)):
            require(value is None or callable(value), "MetricLoss", name, "be callable", repr(value))
        self.loss, self.miner = loss, miner

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        labels = batch.labels.to(embeddings.device)
        if self.miner is None:
            return self.loss(embeddings, labels)
        return self.loss(embeddings, labels, self.miner(embeddings, labels))


class Classes(nn.Module):
    """The baseline: cross-entropy over the identities of the training set, scale * cos(embedding, weight of identity).

    margin: what is taken off the cosine of the right identity, so that it must win by as much: of identities that were
    never seen, embeddings then lie closer together. The weights are of no use for those; what is kept is the network
    before them.

    Paper: NormFace, arXiv 1704.06369, section 3.2; with a margin CosFace, arXiv 1801.09414, equation 4.
    """

    def __init__(
        self, embedding_dim: int, num_classes: int, *, scale: float = 16.0, margin: float = 0.0, seed: int = 0
    ) -> None:
        super().__init__()
        require_count("Classes", "embedding_dim", embedding_dim)
        require_count("Classes", "num_classes", num_classes)
        require(scale > 0, "Classes", "scale", "be positive", scale)
        require(0 <= margin < 2, "Classes", "margin", "be from 0 to below 2, the largest difference", margin)
        self.scale, self.margin = scale, margin
        # Only directions count, and a step turns a long row less: length 1, whatever the width.
        weight = torch.randn(num_classes, embedding_dim, generator=drawn(seed, 0))
        self.weight = nn.Parameter(functional.normalize(weight))

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        cosines = self._cosines(embeddings)
        if not len(embeddings):
            return cosines.sum()
        right = functional.one_hot(batch.labels, len(self.weight)).to(cosines)
        return functional.cross_entropy(self.scale * (cosines - self.margin * right), batch.labels)

    def measure(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> dict[str, float]:
        return {"accuracy": accuracy(self._cosines(embeddings), batch), **spread(embeddings)}

    def _cosines(self, embeddings: Float[Tensor, "B E"]) -> Float[Tensor, "B C"]:
        return functional.normalize(embeddings) @ functional.normalize(self.weight).mT


class Logits(nn.Module):
    """Cross-entropy of a network that gives a logit for each class itself: -log softmax(logits)[label], the mean.

    >>> batch = Batch(torch.zeros(1, 1, 1, 1), torch.tensor([1]), torch.tensor([0]), 0)
    >>> Logits()(torch.tensor([[0.0, 0.0]]), batch)
    tensor(0.6931)
    """

    def forward(self, embeddings: Float[Tensor, "B C"], batch: Batch) -> Float[Tensor, ""]:
        return functional.cross_entropy(embeddings, batch.labels) if len(embeddings) else embeddings.sum()

    def measure(self, embeddings: Float[Tensor, "B C"], batch: Batch) -> dict[str, float]:
        return {"accuracy": accuracy(embeddings, batch)}


class Harmonic(TripletObjective):
    """The triplet loss over new vectors and those that an old network has made, in one space: the old ones stay.

    old: vectors of an old network. rows: for each example of the training set, which of them is of the same image (-1
    for none), so that every batch meets its own images' old vectors. Without `rows` they are only known by their
    `labels`: a batch then meets `most` of those whose identity it has, by chance; no image, no old network is needed.

    Paper: FaceNet, arXiv 1503.03832, appendix 7.
    """

    def __init__(
        self,
        old: Float[Tensor, "M E"],
        labels: Int64[Tensor, "M"],
        *,
        rows: Int64[Tensor, "N"] | None = None,
        margin: float = 0.2,
        most: int = 512,
        seed: int = 0,
    ) -> None:
        super().__init__()
        vectors = isinstance(old, Tensor) and old.dim() == 2 and isinstance(labels, Tensor)
        require(vectors, "Harmonic", "old", "be a matrix of vectors, with a tensor of labels", type(old).__name__)
        require_margin("Harmonic", margin)
        whole = labels.shape == old.shape[:1]
        require(whole, "Harmonic", "labels", f"have one entry for each of {len(old)} vectors", tuple(labels.shape))
        require_count("Harmonic", "most", most)
        self.margin, self.most, self.seed = margin, most, seed
        self.old, self.labels, self.rows = old.detach(), labels, rows

    @property
    def fingerprint(self) -> str:
        """A hash of the old vectors and of how they are used."""
        digest = hashlib.sha256(f"{self.margin} {self.most} {self.seed}".encode())
        for tensor in (self.old, self.labels, self.rows):
            digest.update(b"" if tensor is None else tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def forward(self, embeddings: Float[Tensor, "B E"], batch: Batch) -> Float[Tensor, ""]:
        chosen = self._chosen(batch)
        return harmonic_loss(
            embeddings,
            self.old[chosen].to(embeddings.device),
            batch.labels,
            old_labels=self.labels[chosen],
            margin=self.margin,
            reduction="mean",
            fallback="farthest",
            generator=drawn(self.seed, batch.step),
        )

    def _chosen(self, batch: Batch) -> Int64[Tensor, "n"]:
        if self.rows is not None:
            chosen = self.rows[batch.rows]
            return chosen[chosen >= 0]
        known = torch.isin(self.labels, batch.labels).nonzero()[:, 0]
        order = torch.randperm(len(known), generator=drawn(self.seed, batch.step))
        return known[order[: self.most]]


def accuracy(logits: Float[Tensor, "B C"], batch: Batch) -> float:
    """The share of a batch whose largest logit is that of its label; 0 of an empty batch."""
    if not len(logits):
        return 0.0
    return (logits.argmax(1) == batch.labels.to(logits.device)).double().mean().item()


def spread(embeddings: Float[Tensor, "B E"]) -> dict[str, float]:
    """Mean squared distance and effective rank of a batch; 0 where there are no two embeddings."""
    if len(embeddings) < 2:
        return {"mean_distance": 0.0, "effective_rank": 0.0}
    measured = collapse(embeddings)
    return {"mean_distance": measured.mean_distance, "effective_rank": measured.effective_rank}


def random_triplets(labels: Tensor, *, seed: int, step: int) -> Triplets:
    """For every ordered pair of two rows of an identity, one row of any other."""
    same = labels[:, None] == labels
    anchor, positive = (same & ~torch.eye(len(labels), dtype=torch.bool)).nonzero(as_tuple=True)
    others = (~same).double()
    kept = others.sum(1)[anchor] > 0
    anchor, positive = anchor[kept], positive[kept]
    if not len(anchor):
        return Triplets(anchor, positive, anchor)
    place = torch.rand(len(anchor), generator=drawn(seed, step), dtype=torch.float64) * others.sum(1)[anchor]
    # The k-th other row of an anchor is where the running count of others passes k.
    counts = others.cumsum(1)
    negative = torch.searchsorted(counts[anchor], place[:, None], right=True)[:, 0]
    return Triplets(anchor, positive, negative)


def drawn(seed: int, step: int) -> torch.Generator:
    """A generator for one step of one seed."""
    return torch.Generator().manual_seed((seed * 1_000_003 + step) % (1 << 63))
