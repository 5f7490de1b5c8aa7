"""Changes of an image that a network should bear: compression, fewer pixels, a covered part, light, moves and turns.

A shift is applied to an image that has the network's size already, whatever it was before.
"""

import io
import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy
from PIL import Image

from likewise.checks import require
from likewise.data import Examples, Preparation, Source
from likewise.data.pictures import Pixels

GREY = 128


@runtime_checkable
class Shift(Protocol):
    """An image in, an image of the same size out. `group` names the kind, `value` says how much."""

    @property
    def group(self) -> str: ...

    @property
    def value(self) -> float: ...

    def __call__(self, pixels: Pixels, /) -> Pixels: ...


@dataclass(frozen=True)
class Shifted:
    """Images of another source, at the network's size and shifted."""

    source: Source
    preparation: Preparation
    shift: Shift

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        return self.shift(self.preparation.fitted(self.source.read(index, least=least)))


def shifted(examples: Examples, preparation: Preparation, shift: Shift) -> Examples:
    """The same examples, each image changed when it is read."""
    source = Shifted(examples.source, preparation, shift)
    return Examples(examples.title, source, examples.items, examples.labels, examples.identities, examples.skipped)


@dataclass(frozen=True)
class Mirror:
    """Left becomes right.

    >>> Mirror()(numpy.array([[[1], [2]]], numpy.uint8))[0, :, 0].tolist()
    [2, 1]
    """

    group = "mirror"
    value = 1.0

    def __call__(self, pixels: Pixels, /) -> Pixels:
        return pixels[:, ::-1]


@dataclass(frozen=True)
class Jpeg:
    """Encoded as JPEG at a quality from 1 to 95, and decoded."""

    value: float
    group = "JPEG quality"

    def __post_init__(self) -> None:
        require(1 <= self.value <= 95, "Jpeg", "value", "be a quality from 1 to 95", self.value)

    def __call__(self, pixels: Pixels, /) -> Pixels:
        file = io.BytesIO()
        _picture(pixels).save(file, "JPEG", quality=int(self.value))
        return _pixels(Image.open(file), pixels)


@dataclass(frozen=True)
class Resolution:
    """Resized to so many pixels in all, in the same proportions, and back; an image that has no more stays as it is."""

    value: float
    group = "pixels"

    def __post_init__(self) -> None:
        require(self.value >= 1, "Resolution", "value", "be a number of pixels", self.value)

    def __call__(self, pixels: Pixels, /) -> Pixels:
        rows, columns = pixels.shape[:2]
        scale = math.sqrt(self.value / (rows * columns))
        if scale >= 1:
            return pixels
        small = max(1, round(columns * scale)), max(1, round(rows * scale))
        picture = _picture(pixels).resize(small, Image.Resampling.BILINEAR)
        return _pixels(picture.resize((columns, rows), Image.Resampling.BILINEAR), pixels)


@dataclass(frozen=True)
class Cover:
    """A grey box over a part of the image.

    value: which part of the rows it covers; wide: of the columns, as many unless given. down, across: where its middle
    is, from 0 at the top and the left to 1.

    >>> Cover(0.5, down=0.25)(numpy.zeros((4, 2, 1), numpy.uint8))[..., 0].tolist()
    [[128, 0], [128, 0], [0, 0], [0, 0]]
    """

    value: float
    group: str = "covered"
    down: float = 0.5
    across: float = 0.5
    wide: float | None = None

    def __post_init__(self) -> None:
        for name in ("value", "down", "across", "wide"):
            value = getattr(self, name)
            require(value is None or 0 <= value <= 1, "Cover", name, "be from 0 to 1", value)

    def __call__(self, pixels: Pixels, /) -> Pixels:
        wide = self.value if self.wide is None else self.wide
        covered = pixels.copy()
        covered[_span(self.value, self.down, pixels.shape[0]), _span(wide, self.across, pixels.shape[1])] = GREY
        return covered


def _span(part: float, centre: float, length: int) -> slice:
    """A part of a length around a place, moved so far that it lies inside."""
    count = round(part * length)
    start = min(max(round(centre * length - count / 2), 0), length - count)
    return slice(start, start + count)


@dataclass(frozen=True)
class Gamma:
    """255 (v / 255)^gamma: darker above 1, lighter below.

    >>> Gamma(2.0)(numpy.full((1, 1, 1), 51, numpy.uint8)).item()  # 255 / 25
    10
    """

    value: float
    group = "gamma"

    def __post_init__(self) -> None:
        require(self.value > 0, "Gamma", "value", "be positive", self.value)

    def __call__(self, pixels: Pixels, /) -> Pixels:
        table = (255 * (numpy.arange(256) / 255) ** self.value).round().astype(numpy.uint8)
        return table[pixels]


@dataclass(frozen=True)
class Brightness:
    """So much of the range is added; what leaves it is cut off.

    >>> Brightness(-0.2)(numpy.array([[[100], [20]]], numpy.uint8))[0, :, 0].tolist()
    [49, 0]
    """

    value: float
    group = "brightness"

    def __call__(self, pixels: Pixels, /) -> Pixels:
        return (pixels.astype(numpy.float64) + 255 * self.value).round().clip(0, 255).astype(numpy.uint8)


@dataclass(frozen=True)
class Move:
    """Moved to the right by a part of the columns (to the left below 0); what enters repeats the edge.

    >>> Move(0.25)(numpy.array([[[1], [2], [3], [4]]], numpy.uint8))[0, :, 0].tolist()
    [1, 1, 2, 3]
    """

    value: float
    group = "moved across"

    def __post_init__(self) -> None:
        require(-1 <= self.value <= 1, "Move", "value", "be from -1 to 1", self.value)

    def __call__(self, pixels: Pixels, /) -> Pixels:
        columns = pixels.shape[1]
        return pixels[:, (numpy.arange(columns) - round(self.value * columns)).clip(0, columns - 1)]


@dataclass(frozen=True)
class Turn:
    """Turned by so many degrees, against the clock, about the centre; corners that enter are grey."""

    value: float
    group = "turned, degrees"

    def __call__(self, pixels: Pixels, /) -> Pixels:
        fill = GREY if pixels.shape[2] == 1 else (GREY,) * 3
        picture = _picture(pixels).rotate(self.value, Image.Resampling.BILINEAR, fillcolor=fill)
        return _pixels(picture, pixels)


def _picture(pixels: Pixels) -> Image.Image:
    return Image.fromarray(numpy.ascontiguousarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels))


def _pixels(picture: Image.Image, like: Pixels) -> Pixels:
    return numpy.asarray(picture).reshape(like.shape)
