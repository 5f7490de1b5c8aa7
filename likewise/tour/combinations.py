"""What may stand in softmax's place in a trained network: exact near by, a feature map or nothing beyond."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from likewise.attention import Attend, FeatureMap, Fitted, Hyperbolic, Linear, Positive, Softmax, Structure, Taylor
from likewise.networks.attends import Captured

BASELINE = "Positive"  # FAVOR+
NOTHING, MEAN = "nothing beyond", "mean of V"
WIDEST = 256

# From what a layer was given on training data, the width of the map and a generator.
MakeMap = Callable[[Captured, int, Generator], FeatureMap]
MAPS: dict[str, MakeMap] = {
    "Positive": lambda seen, width, generator: Positive(
        seen.k.shape[3], num_features=width, kv_heads=seen.k.shape[1], generator=generator
    ),
    "Positive, simplex": lambda seen, width, generator: Positive(
        seen.k.shape[3], num_features=width, kv_heads=seen.k.shape[1], sampler="simplex", generator=generator
    ),
    "Hyperbolic": lambda seen, width, generator: Hyperbolic(
        seen.k.shape[3], num_features=width, kv_heads=seen.k.shape[1], generator=generator
    ),
    "Fitted": lambda seen, width, generator: Fitted(
        seen.k.shape[3], num_features=width, kv_heads=seen.k.shape[1], generator=generator
    ).fit(seen.q, seen.k),
}
# Maps that have one width and nothing random, from the key width. They are exact for a kernel of their own, so that
# exact weights near by would change nothing.
FIXED_MAPS: dict[str, Callable[[int], FeatureMap]] = {"Taylor": Taylor}


@dataclass(frozen=True)
class Combination:
    """A map of a width, 0 for none, and exact weights for pairs less than `within` positions apart, 0 for none."""

    map: str
    width: int
    within: int
    make: Callable[[Captured, Generator], Attend]  # from what a layer was given on training data


def combinations(key_dim: int, widths: tuple[int, ...], withins: tuple[int, ...]) -> Iterator[Combination]:
    """What needs no map; every random map at every width, alone and with exact weights near by; fixed maps."""
    yield Combination(MEAN, 0, 0, lambda seen, generator: Mean())
    for within in withins:
        yield Combination(NOTHING, 0, within, lambda seen, generator, within=within: Window(within))
    fixed = {name: make(key_dim).dim or 0 for name, make in FIXED_MAPS.items()}
    fixed = {name: width for name, width in fixed.items() if width <= WIDEST}
    for width in sorted(set(fixed.values()) - set(widths)):  # what these are compared with
        yield Combination(BASELINE, width, 0, partial(make_random, BASELINE, width, 0))
    for within in (0, *withins):
        for name in MAPS:
            for width in widths:
                yield Combination(name, width, within, partial(make_random, name, width, within))
    for name, width in fixed.items():
        yield Combination(name, width, 0, partial(make_fixed, name))


def make_random(name: str, width: int, within: int, seen: Captured, generator: Generator) -> Attend:
    """Linear attention with a random map for one layer."""
    return linear(MAPS[name](seen, width, generator), within)


def make_fixed(name: str, seen: Captured, generator: Generator) -> Attend:
    """Linear attention with a map that is not drawn."""
    return linear(FIXED_MAPS[name](seen.k.shape[3]), 0)


def linear(features: FeatureMap, within: int) -> Attend:
    """Linear attention with exact weights for pairs less than `within` positions apart."""
    return Linear(features, exact_within=within or None)


class Mean(Attend):
    """The mean of the values that a row sees: softmax of zeros."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        return Softmax().attend(torch.zeros_like(q), k, v, structure)


class Window(Attend):
    """Softmax over pairs less than `within` positions apart, and nothing beyond; as many queries as keys."""

    def __init__(self, within: int) -> None:
        super().__init__()
        self.within = within

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        place = torch.arange(k.shape[2], device=k.device)
        near = (place[:, None] - place).abs() < self.within
        return Softmax().attend(q, k, v, structure._replace(mask=near[None, None]))
