"""Pixels -> what a network takes: one size, one number of channels, values around 0; and changes by chance."""

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy
import torch
from jaxtyping import Float, UInt8
from PIL import Image
from torch import Tensor

from likewise.checks import require, require_count
from likewise.data.pictures import Pixels

GREY = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow


@dataclass(frozen=True)
class Preparation:
    """(pixels, resized to (rows, columns), of 1 or 3 channels, / 255 - mean) / deviation.

    It belongs to a network as its weights do: `likewise.networks.save_network` stores it with them.

    >>> Preparation((1, 2), channels=1)(numpy.array([[[0], [255]]], numpy.uint8))
    tensor([[[-1.,  1.]]])
    """

    size: tuple[int, int]
    channels: int = 3
    mean: float = 0.5
    deviation: float = 0.5

    def __post_init__(self) -> None:
        for name, pixels in zip(("rows", "columns"), self.size, strict=True):
            require_count("Preparation", name, pixels)
        require(self.channels in (1, 3), "Preparation", "channels", "be 1 or 3", self.channels)
        require(self.deviation > 0, "Preparation", "deviation", "be positive", self.deviation)

    def __call__(self, pixels: Pixels) -> Float[Tensor, "D Z W"]:
        return self.numbers(torch.from_numpy(numpy.array(self.fitted(pixels)))[None])[0]

    @property
    def least(self) -> int:
        """How many rows and columns an image should be decoded to."""
        return max(self.size)

    def fitted(self, pixels: Pixels) -> UInt8[numpy.ndarray, "Z W D"]:
        """The image resized (a pixel is a mean of what it covers) and with the right number of channels."""
        if pixels.shape[2] != self.channels:
            grey = (pixels @ numpy.array(GREY)).round().astype(numpy.uint8)[..., None] if self.channels == 1 else pixels
            pixels = grey if self.channels == 1 else pixels.repeat(3, axis=2)
        rows, columns = self.size
        if pixels.shape[:2] == self.size:
            return pixels
        picture = Image.fromarray(pixels[..., 0] if self.channels == 1 else numpy.ascontiguousarray(pixels))
        resized = numpy.asarray(picture.resize((columns, rows), Image.Resampling.BILINEAR))
        return resized.reshape(rows, columns, self.channels)

    def numbers(self, pixels: UInt8[Tensor, "n Y X C"]) -> Float[Tensor, "n C Y X"]:
        """The numbers of images that have their size already."""
        scaled = pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format)
        return scaled.div_(255).sub_(self.mean).div_(self.deviation)

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "size": list(self.size)}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        """What `to_json` gave."""
        rows, columns = found["size"]
        rest = {name: found[name] for name in ("channels", "mean", "deviation")}
        return cls((rows, columns), **rest)


@dataclass(frozen=True)
class Augmentation:
    """An image, perhaps mirrored, moved a little, and with other light; what happens follows from the seed alone.

    mirror: the chance of being mirrored. shift: by which part of rows and columns it may move; what enters repeats the
    edge. light: v -> m + (v - m) c + b with contrast c in 1 +- light, brightness b in +- light of the range and m the
    image's mean. `seeds` are any whole numbers, such as (seed, epoch, index): nothing depends on which worker does it.

    >>> image = numpy.array([[[10], [20], [30]]], numpy.uint8)
    >>> Augmentation(mirror=1.0, shift=0.0, light=0.0)(image, 0, 0, 7)[0, :, 0].tolist()
    [30, 20, 10]
    """

    mirror: float = 0.5
    shift: float = 0.06
    light: float = 0.15

    def __post_init__(self) -> None:
        for name in ("mirror", "shift", "light"):
            value = getattr(self, name)
            require(0 <= value <= 1, "Augmentation", name, "be from 0 to 1", value)

    def __call__(self, pixels: Pixels, *seeds: int) -> Pixels:
        draw = numpy.random.default_rng(seeds)
        mirror, down, across, contrast, brightness = draw.random(5)
        if mirror < self.mirror:
            pixels = pixels[:, ::-1]
        rows, columns = pixels.shape[:2]
        pixels = _moved(pixels, _steps(down, self.shift, rows), _steps(across, self.shift, columns))
        if not self.light:
            return pixels
        contrast, brightness = 1 + self.light * (2 * contrast - 1), 255 * self.light * (2 * brightness - 1)
        values = pixels.astype(numpy.float32)
        mean = values.mean()
        return (mean + (values - mean) * contrast + brightness).round().clip(0, 255).astype(numpy.uint8)

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def _steps(draw: float, shift: float, length: int) -> int:
    """-most .. most, each with the same chance."""
    most = int(shift * length)
    return int(draw * (2 * most + 1)) - most


def _moved(pixels: Pixels, down: int, across: int) -> Pixels:
    rows = (numpy.arange(pixels.shape[0]) - down).clip(0, pixels.shape[0] - 1)
    columns = (numpy.arange(pixels.shape[1]) - across).clip(0, pixels.shape[1] - 1)
    return pixels[rows[:, None], columns[None, :]]
