"""Whether vectors of a new model may stand beside templates of an old one: a verdict from held-out pairs."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.gallery.store import Model, Store, heirs
from likewise.metric import FewImpostorsWarning, Versions, compare_versions

LOST = 1.0  # standard errors by which VAL of mixed pairs may lie below that of old ones
MORE = 2.0  # times the FAR that mixed pairs may have at the threshold of the old model


@dataclass(frozen=True)
class Upgrade:
    """A verdict on two models, with its reasons and the rates it rests on: new-new, new-old, old-old."""

    compatible: bool
    reasons: tuple[str, ...]
    versions: Versions

    @property
    def warnings(self) -> tuple[str, ...]:
        """What limits the rates."""
        return self.versions.warnings


def judge_upgrade(
    new: Float[Tensor, "N E"],
    old: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    *,
    far: float = 1e-3,
    seed: int = 0,
) -> Upgrade:
    """Judge two models on the same images of people that neither was trained on.

    Compatible means both: VAL at the FAR of new against old vectors is not below old against old by more than one
    standard error, so that a mixed gallery finds at least as many; and the FAR of mixed pairs at the old threshold is
    at most twice the one asked for, so that this threshold may stay.

    Paper: Schroff et al. 2015, appendix 7: harmonic embeddings.

    >>> import torch
    >>> generator = torch.Generator().manual_seed(0)
    >>> people = torch.nn.functional.normalize(torch.randn(60, 8, generator=generator), dim=1).repeat_interleave(4, 0)
    >>> old = torch.nn.functional.normalize(people + 0.1 * torch.randn(240, 8, generator=generator), dim=1)
    >>> judge_upgrade(old, old, torch.arange(60).repeat_interleave(4), far=0.05).compatible
    True
    >>> judge_upgrade(old.flip(1), old, torch.arange(60).repeat_interleave(4), far=0.05).compatible
    False
    """
    with warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):  # the result holds the warning
        found = compare_versions(new, old, labels, far=far, seed=seed)
    error = max(found.mixed.rates.val_error, found.old.rates.val_error)
    error = 0.0 if error != error else error  # one split has no error
    least = found.old.val - LOST * error
    finds = found.mixed.val >= least
    keeps = found.mixed.far_kept <= MORE * far
    reasons = (
        f"VAL of new against old vectors is {found.mixed.val:.4f}; it must be at least {least:.4f}, "
        f"old against old less one standard error: {'yes' if finds else 'no'}.",
        f"FAR of new against old vectors at the old threshold is {found.mixed.far_kept:.2g}; it must be at most "
        f"{MORE * far:.2g}: {'yes' if keeps else 'no'}.",
    )
    return Upgrade(finds and keeps, reasons, found)


def heirs_in(store: Store, older: Sequence[int], own: Model) -> dict[int, int]:
    """The templates by a model that take over the corrections of templates by older ones, identity by identity."""
    corrected = [number for each in store.corrections() for number in (each.one, each.two)]
    people: set[int] = set()
    for model in store.models() if corrected else ():
        for _, owners, numbers in store.rows(model) if model.id in older else ():
            people |= set(owners[numpy.isin(numbers, corrected)].tolist())
    found: dict[int, int] = {}
    for each in people:
        sides: tuple[list[tuple[int, str]], ...] = ([], [])
        for templates in store.templates(each):
            if templates.model.id in (*older, own.id):
                side = sides[templates.model.id == own.id]
                side += zip(templates.numbers, templates.sources, strict=True)
        found |= heirs(*sides)
    return found
