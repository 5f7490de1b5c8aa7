"""How far a threshold can be trusted when pairs share images: people are drawn anew, and their pairs come along."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.metric.rates import allowed, below
from likewise.stats import percentile_interval

LEAST = 2  # identities


@dataclass(frozen=True)
class Bootstrapped:
    """A threshold for a wanted FAR; where it might as well have come to lie, and where its FAR might, with confidence.

    low, high: of the threshold; infinite where it lies beyond the pairs that were kept. far: on the pairs themselves.
    """

    threshold: float
    low: float
    high: float
    wanted: float
    far: float
    far_low: float
    far_high: float
    confidence: float
    identities: int
    draws: int


def bootstrap_threshold(
    impostors: Float[Tensor, "m"],
    identities: Int64[Tensor, "m 2"],
    faces: Int64[Tensor, "P"] | None = None,
    *,
    far: float,
    confidence: float = 0.95,
    draws: int = 400,
    seed: int = 0,
) -> Bootstrapped:
    """The largest threshold with FAR <= `far`, with intervals from identities drawn again and again, with replacement.

    A person drawn w times brings each of his pairs with a person drawn v times w v times: one person who looks like
    everybody is then seen to matter, which counting pairs as independent hides. Intervals run between the percentiles
    of the draws; with pairs that are independent they are wider than need be. A draw of one person alone has no pairs
    and is left out. `identities` are those of each pair. With `faces`, how many images each identity 0 .. P - 1 has,
    `impostors` may be only the smallest of all their pairs: those up to a few times `far`.

    Paper: Owen, The pigeonhole bootstrap, 2007; Bolle et al. 2004 draw people as well.

    >>> people = torch.tensor([[0, 1], [0, 2], [1, 2]])
    >>> found = bootstrap_threshold(torch.tensor([1.0, 2.0, 3.0]), people, far=0.4)
    >>> round(found.threshold, 5), round(found.far, 4), found.far_low, found.far_high  # without person 2, FAR is 1
    (2.0, 0.3333, 0.0, 1.0)
    """
    where = "bootstrap_threshold"
    require(0 < far < 1, where, "far", "be between 0 and 1", far)
    require(0 < confidence < 1, where, "confidence", "be between 0 and 1", confidence)
    require_count(where, "draws", draws)
    require_count(where, "seed", seed, least=0)
    shape = (len(impostors), 2)
    fits = identities.shape == shape
    require(fits, where, "identities", f"have two entries for each of {shape[0]} pairs", tuple(identities.shape))
    apart = bool((identities[:, 0] != identities[:, 1]).all())
    require(apart, where, "identities", "differ in every pair", "a pair of one person")
    values, order = impostors.detach().cpu().sort()
    who = identities.cpu()[order]
    if faces is None:
        names, who = who.unique(return_inverse=True)
        people, total = len(names), float(len(values))
    else:
        people, total = len(faces), float(_pairs(faces.double()))
    require(people >= LEAST, where, "identities", f"be at least {LEAST} people", people)
    place = allowed(far, int(total))
    require(place < len(values), where, "impostors", f"hold the smallest {place + 1} distances", len(values))
    threshold = below(values[place])
    accepted = int((values <= threshold).sum())
    fars, thresholds = [], []
    for weights, whole in _draws(who, people, faces, draws, torch.Generator().manual_seed(seed)):
        fars.append(float(weights[accepted - 1]) / whole if accepted else 0.0)
        first = int(torch.searchsorted(weights, far * whole * (1 + 1e-12), right=True))
        thresholds.append(below(values[first]) if first < len(values) else float("inf"))
    require(bool(fars), where, "draws", "be enough that one of them has pairs", draws)
    (low, high), (far_low, far_high) = (percentile_interval(draws_of, confidence) for draws_of in (thresholds, fars))
    found = accepted / total
    return Bootstrapped(threshold, low, high, far, found, far_low, far_high, confidence, people, len(fars))


def _draws(
    who: Int64[Tensor, "m 2"], people: int, faces: Int64[Tensor, "P"] | None, draws: int, generator: torch.Generator
) -> Iterator[tuple[Float[Tensor, "m"], float]]:
    """For each draw how often the pairs up to each come along, and how often all pairs do."""
    for _ in range(draws):
        drawn = torch.randint(people, (people,), generator=generator).bincount(minlength=people).double()
        weights = (drawn[who[:, 0]] * drawn[who[:, 1]]).cumsum(0)
        whole = float(weights[-1]) if faces is None else float(_pairs(drawn * faces))
        if whole > 0:
            yield weights, whole


def _pairs(faces: Float[Tensor, "P"]) -> Float[Tensor, ""]:
    """Pairs of images of two different people."""
    return (faces.sum() ** 2 - faces.square().sum()) / 2
