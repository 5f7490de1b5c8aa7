"""Which pairs are judged, and which of them together: lists of pairs with folds, or all pairs of a set in splits."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.data import Examples
from likewise.data.lfw import Protocol, pair_rows
from likewise.data.pair_lists import PairList

MOST = 3000  # pairs of each kind that are drawn from a split for its accuracy


@dataclass(frozen=True, eq=False)
class Listed:
    """Pairs of rows of some examples. Each fold is judged by thresholds found on the others.

    folds: each pair's, or their number, or None, as in `likewise.metric.verification`. fold: judge this one alone.
    """

    title: str
    rows: Int64[Tensor, "n 2"]
    same: Bool[Tensor, "n"]
    folds: Int64[Tensor, "n"] | int | None = None
    fold: int | None = None

    def __post_init__(self) -> None:
        if self.fold is not None:
            names = self.folds.unique().tolist() if isinstance(self.folds, Tensor) else []
            require(self.fold in names, "Listed", "fold", "be one of the listed folds", self.fold)

    @property
    def judged(self) -> Bool[Tensor, "n"]:
        """The pairs of the one fold, or all."""
        alone = self.fold is not None and isinstance(self.folds, Tensor)
        return self.folds == self.fold if alone else torch.ones_like(self.same)

    @property
    def calibrating(self) -> Bool[Tensor, "n"]:
        """The pairs that thresholds come from: those outside the one fold, or all."""
        return self.judged if self.fold is None else ~self.judged


@dataclass(frozen=True)
class Everyone:
    """All pairs of a set; the identities are dealt to so many splits, by the seed, for the standard error.

    Paper: Schroff et al. 2015, section 4.1: five splits of a hold-out set, disjoint in identity.
    """

    splits: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        require_count("Everyone", "splits", self.splits)
        require_count("Everyone", "seed", self.seed, least=0)

    @property
    def title(self) -> str:
        return "all pairs"

    def deal(self, labels: Int64[Tensor, "N"]) -> Int64[Tensor, "N"]:
        """Each row's split. There are fewer splits if they would not all hold two people, one of them with two images.

        >>> Everyone(splits=5).deal(torch.tensor([0, 0, 1, 2, 2, 3])).unique().tolist()
        [0, 1]
        """
        _, who, sizes = labels.unique(return_inverse=True, return_counts=True)
        several = int((sizes > 1).sum())
        enough = several > 0 and len(sizes) > 1
        require(enough, "Everyone.deal", "labels", "have two people, one with two images", f"{len(sizes)} people")
        splits = min(self.splits, several, len(sizes) // 2)
        shuffled = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(self.seed))
        # Those with several images first, so that they are spread evenly.
        order = shuffled[(sizes[shuffled] > 1).long().argsort(descending=True, stable=True)]
        split = torch.empty_like(order)
        split[order] = torch.arange(len(order)) % splits
        return split[who]

    def draw(self, labels: Int64[Tensor, "N"]) -> Listed:
        """As many same as different pairs of each split, as LFW has them; the splits are the folds.

        A same pair is a person by chance, then two images; a different pair is two people, then an image of each. At
        most MOST of each kind; none comes twice.
        """
        split, rows, same, folds = self.deal(labels), [], [], []
        generator = torch.Generator().manual_seed(self.seed)
        for name in split.unique().tolist():
            mine = (split == name).nonzero()[:, 0]
            kinds = _drawn(labels[mine], generator)
            count = min(map(len, kinds))
            for kind, pairs in zip((True, False), kinds, strict=True):
                rows.append(mine[pairs[torch.randperm(len(pairs), generator=generator)[:count]]])
                same.append(torch.full((count,), kind))
                folds.append(torch.full((count,), name))
        return Listed("drawn pairs", torch.cat(rows), torch.cat(same), torch.cat(folds))


def _drawn(labels: Int64[Tensor, "N"], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Same pairs and different ones."""
    _, sizes = labels.unique(return_counts=True)
    order, first = labels.argsort(stable=True), sizes.cumsum(0) - sizes

    def below(limit: Int64[Tensor, "n"]) -> Int64[Tensor, "n"]:
        return (torch.rand(MOST, generator=generator, dtype=torch.float64) * limit).long()

    several = (sizes > 1).nonzero()[:, 0]
    who = several[below(torch.full((MOST,), len(several)))]
    one = below(sizes[who])
    another = (one + 1 + below(sizes[who] - 1)) % sizes[who]
    same = torch.stack([order[first[who] + one], order[first[who] + another]], 1)
    people = torch.full((MOST,), len(sizes))
    who = below(people)
    other = (who + 1 + below(people - 1)) % len(sizes)
    images = [order[first[each] + below(sizes[each])] for each in (who, other)]
    different = torch.stack(images, 1)
    return tuple(pairs.sort(1).values.unique(dim=0) for pairs in (same, different))


def lfw_pairs(examples: Examples, protocol: Protocol, *, view: Literal[1, 2] = 2, fold: int | None = None) -> Listed:
    """LFW's own pairs. View 2 is for a result: ten folds of 300 + 300. View 1 is for every choice before it.

    fold: of View 2, from 1 to 10, to be judged alone with thresholds from the other nine: for a network that was
    trained on the people of these nine. View 1 is its 500 + 500 test pairs, dealt to ten folds.

    Paper: Huang et al. 2007, section III.
    """
    require(view in (1, 2), "lfw_pairs", "view", "be 1 or 2", view)
    if view == 1:
        require(fold is None, "lfw_pairs", "fold", "be of View 2", fold)
        return Listed("LFW View 1, test pairs", *pair_rows(examples, protocol.test_pairs))
    folds = len(protocol.pairs)
    if fold is not None:
        require_count("lfw_pairs", "fold", fold)
        require(fold <= folds, "lfw_pairs", "fold", f"be from 1 to {folds}", fold)
    rows, same = pair_rows(examples, [pair for part in protocol.pairs for pair in part])
    number = torch.cat([torch.full((len(part),), place + 1) for place, part in enumerate(protocol.pairs)])
    title = f"LFW View 2, {folds} folds" if fold is None else f"LFW View 2, fold {fold}"
    return Listed(title, rows, same, number, fold)


def own_pairs(found: PairList, *, folds: int | None = None) -> Listed:
    """The pairs of a list. folds: how many, where the list has none: ten, or as many as there are of the rarer kind."""
    rows, same = pair_rows(found.examples, found.pairs)
    if found.folds is not None:
        require(folds is None, "own_pairs", "folds", "be those of the list", folds)
        return Listed(f"pairs of {found.examples.title}", rows, same, torch.tensor(found.folds))
    return Listed(f"pairs of {found.examples.title}", rows, same, folds)
