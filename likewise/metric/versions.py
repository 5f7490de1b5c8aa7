"""Two versions of a network side by side: can the vectors of a new one be compared with those an old one has stored?"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Generator, Tensor

from likewise.checks import require, require_count
from likewise.metric.rates import Verification, require_shown, verification
from likewise.metric.triplet import require_batch
from likewise.similarity import wide

SPLITS = 5  # of a hold-out set, as in section 4.1 of the paper
MOST = 20_000  # pairs of each kind in a split


class Pairs(NamedTuple):
    """Rows of two sets that are compared, whether both show the same person, and the split that both belong to."""

    first: Int64[Tensor, "n"]
    second: Int64[Tensor, "n"]
    same: Bool[Tensor, "n"]
    split: Int64[Tensor, "n"]


@dataclass(frozen=True)
class Match:
    """How well vectors of one version find those of another, or of the same: `rates`, by thresholds of their own.

    val_kept, far_kept: the shares of same and of different pairs that are accepted by the old version's threshold,
    which is what happens in a gallery that keeps its threshold. pairs: how many of each kind, same and different, were
    compared.
    """

    rates: Verification
    val_kept: float
    far_kept: float
    pairs: int

    @property
    def val(self) -> float:
        """VAL at the FAR asked for, the mean over splits."""
        return self.rates.val


@dataclass(frozen=True)
class Versions:
    """New vectors against new, new against old, old against old; then those of the control, if there is one.

    warnings: what limits the rates; every output shows them beside the rates.
    """

    new: Match
    mixed: Match
    old: Match
    control: Match | None
    control_mixed: Match | None
    far: float
    warnings: tuple[str, ...] = ()

    @property
    def pairs(self) -> int:
        """Of each kind, new against old; other rows have as many if all versions have vectors of the same images."""
        return self.mixed.pairs

    @property
    def ordered(self) -> bool:
        """Whether VAL falls from new-new over new-old to old-old, as figure 8 of the paper has it."""
        return self.new.val > self.mixed.val > self.old.val

    @property
    def price(self) -> float | None:
        """What compatibility costs among new vectors: VAL of the control less VAL of the new version."""
        return None if self.control is None else self.control.val - self.new.val


def compare_versions(
    new: Float[Tensor, "N E"],
    old: Float[Tensor, "M E"],
    labels: Int64[Tensor, "N"],
    control: Float[Tensor, "N E"] | None = None,
    *,
    old_labels: Int64[Tensor, "M"] | None = None,
    far: float = 1e-3,
    splits: int = SPLITS,
    most: int = MOST,
    seed: int = 0,
) -> Versions:
    """VAL at a FAR and accuracy of new-new, new-old and old-old on the same pairs of people that nobody was trained on.

    Pairs are drawn once, as many different as same, at most `most` of each kind in each of some `splits` without a
    common image; each split is judged by thresholds found on the others. control: vectors of the same images by a
    network that was trained like the new one, but without the old. Its vectors and the old ones have nothing to do
    with each other: VAL should be near FAR. old_labels: when `old` are other vectors than those of the same images;
    pairs then differ between the comparisons, and if an image of `new` is among them, it is met as a same pair. A FAR
    that the different pairs of any comparison cannot show, below 3 / their number, is refused.

    Paper: Schroff et al. 2015, appendix 7 and figure 8: new-new above new-old above old-old.

    >>> old, labels = torch.linspace(0, 1, 18)[:, None] ** 3, torch.arange(18) // 9
    >>> found = compare_versions(old / 2 + 4, old, labels, far=0.5, splits=1)  # far from every old vector
    >>> found.new.val == found.old.val, found.mixed.far_kept, found.pairs  # 2 * 9 * 8 / 2
    (True, 0.0, 72)
    """
    where = "compare_versions"
    require(new.shape[-1] == old.shape[-1], where, "old", f"have the width of new, {new.shape[-1]}", old.shape[-1])
    require_batch(where, new, labels)
    require_count(where, "most", most)
    if control is not None:
        shape, got = tuple(new.shape), tuple(control.shape)
        require(got == shape, where, "control", f"have the shape of new, {shape}", got)
    if old_labels is None:
        require(len(old) == len(new), where, "old_labels", "be given when old has other rows than new", None)
    else:
        require_batch(where, old, old_labels)
    of_new, of_mixed, of_old, doubts = compared_pairs(labels, old_labels, far=far, splits=splits, most=most, seed=seed)
    kept = verification(distances(old, old, of_old), of_old.same, far=far, folds=of_old.split).limit

    def match(a: Tensor, b: Tensor, pairs: Pairs) -> Match:
        return _match(distances(a, b, pairs), pairs, far=far, kept=kept)

    return Versions(
        new=match(new, new, of_new),
        mixed=match(new, old, of_mixed),
        old=match(old, old, of_old),
        control=None if control is None else match(control, control, of_new),
        control_mixed=None if control is None else match(control, old, of_mixed),
        far=far,
        warnings=doubts,
    )


def compared_pairs(
    labels: Int64[Tensor, "N"],
    old_labels: Int64[Tensor, "M"] | None = None,
    *,
    far: float,
    splits: int = SPLITS,
    most: int = MOST,
    seed: int = 0,
) -> "tuple[Pairs, Pairs, Pairs, tuple[str, ...]]":
    """Pairs new-new, new-old and old-old of `compare_versions`, and warnings; refused if any cannot show the FAR."""
    of_new = draw_pairs(labels, splits=splits, most=most, seed=seed)
    of_mixed = of_old = of_new
    if old_labels is not None:
        of_mixed = draw_pairs(labels, old_labels, splits=splits, most=most, seed=seed)
        of_old = draw_pairs(old_labels, splits=splits, most=most, seed=seed)
    fewest = min(int((~pairs.same).sum()) for pairs in (of_new, of_mixed, of_old))
    doubts = require_shown("compare_versions", far, fewest, see="far_found and the errors", stacklevel=4)
    return of_new, of_mixed, of_old, doubts


def _match(d: Float[Tensor, "n"], pairs: Pairs, *, far: float, kept: float) -> Match:
    """Distances of pairs, judged by thresholds of their own and by one that is kept."""
    accepted = (d <= kept).double()
    shares = [accepted[kind].mean().item() for kind in (pairs.same, ~pairs.same)]
    return Match(verification(d, pairs.same, far=far, folds=pairs.split), *shares, pairs=int(pairs.same.sum()))


def distances(a: Float[Tensor, "N E"], b: Float[Tensor, "M E"], pairs: Pairs) -> Float[Tensor, "n"]:
    """|a_i - b_j|^2 of listed pairs."""
    dtype = wide(torch.promote_types(a.dtype, b.dtype))
    return (a.detach()[pairs.first].to(dtype) - b.detach()[pairs.second].to(dtype)).square().sum(-1)


def draw_pairs(
    labels: Int64[Tensor, "N"],
    others: Int64[Tensor, "M"] | None = None,
    *,
    splits: int = SPLITS,
    most: int = MOST,
    seed: int = 0,
) -> Pairs:
    """As many different pairs as same ones, in splits that share no row; with `others`, of one row from each set.

    Without `others` no row is paired with itself and no pair comes twice. A split without pairs of both kinds is left
    out.

    >>> pairs = draw_pairs(torch.tensor([0, 0, 1, 1, 2, 2]), splits=1)
    >>> pairs.same.sum().item(), len(pairs.same)
    (3, 6)
    """
    require_count("draw_pairs", "splits", splits)
    generator = Generator().manual_seed(seed)
    sides = [labels] if others is None else [labels, others]
    _, numbers = torch.cat(sides).unique(return_inverse=True)  # of identities, the same on both sides
    sides = numbers.split([len(side) for side in sides])
    splits_of = [dealt(side, splits=splits, generator=generator) for side in sides]
    drawn = []
    for split in range(splits):
        rows, columns = ((splits_of[side] == split).nonzero()[:, 0] for side in (0, -1))
        same = sides[0][rows, None] == sides[-1][columns]
        allowed = torch.ones_like(same)
        if others is None:
            allowed = allowed.triu(1)
        kinds = [(kind & allowed).nonzero() for kind in (same, ~same)]
        count = min(most, *map(len, kinds))
        for kind, places in zip((True, False), kinds, strict=True):
            chosen = places[torch.randperm(len(places), generator=generator)[:count]]
            if others is None:
                turned = torch.rand(count, generator=generator) < 0.5
                chosen = torch.where(turned[:, None], chosen.flip(1), chosen)
            named = torch.full((count,), kind), torch.full((count,), split)
            drawn.append(Pairs(rows[chosen[:, 0]], columns[chosen[:, 1]], *named))
    found = Pairs(*(torch.cat(parts) for parts in zip(*drawn, strict=True)))
    require(len(found.same) > 0, "draw_pairs", "labels", "give pairs of both kinds in one split", "none")
    return found


def dealt(numbers: Int64[Tensor, "N"], *, splits: int, generator: Generator) -> Int64[Tensor, "N"]:
    """A split for each row: an identity is cut into as many parts as have two rows, at most one for each split.

    Its first part is in the split of its number, so that people with few images stay together, wherever they are met,
    and three classes with many images are in every split.

    >>> dealt(torch.tensor([0, 0, 1, 1, 1]), splits=2, generator=Generator().manual_seed(0)).tolist()
    [0, 0, 1, 1, 1]
    """
    order = torch.randperm(len(numbers), generator=generator)
    order = order[numbers[order].argsort(stable=True)]
    found = torch.empty_like(numbers)
    for rows in order.split(numbers.unique(return_counts=True)[1].tolist()):
        parts = max(1, min(splits, len(rows) // 2))
        found[rows] = (numbers[rows] + torch.arange(len(rows)) * parts // len(rows)) % splits
    return found
