"""Examples -> batches of tensors: images of one size with values around 0, changed by chance, read by workers."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from typing import Any, Protocol, Self, runtime_checkable

import numpy
import torch
from jaxtyping import Float, Int64, UInt8
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from likewise.checks import require, require_count
from likewise.data.examples import Examples, Skipped, Stored, examples
from likewise.data.pictures import Pixels, Unreadable

GREY = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow
PIECE = 64  # images of a batch that a worker reads at a time
AHEAD = 2, 32  # pieces that a worker reads before they are asked for, at least and at most: each keeps a file open


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
        pair = isinstance(self.size, tuple | list) and len(self.size) == 2
        require(pair, "Preparation", "size", "be (rows, columns)", repr(self.size))
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


@dataclass(frozen=True, eq=False)
class Batch:
    """Images, whose they are, and which rows of the examples they are; `step` counts batches from 0.

    preparation: what makes numbers of images that are bytes.
    """

    images: Float[Tensor, "B C Y X"] | UInt8[Tensor, "B Y X C"]
    labels: Int64[Tensor, "B"]
    rows: Int64[Tensor, "B"]
    step: int
    skipped: tuple[Skipped, ...] = ()
    preparation: Preparation | None = None

    def numbers(self, images: Tensor) -> Float[Tensor, "n C Y X"]:
        """Some of its images as numbers."""
        return images if self.preparation is None else self.preparation.numbers(images)


@runtime_checkable
class Drawn(Protocol):
    """Which rows each step takes: `drawn[step]`, for ever, or up to an IndexError. A list of lists is one."""

    def __getitem__(self, step: int, /) -> Sequence[int]: ...


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches whose rows `drawn` gives, from any step on; the same ones whenever and however they are read.

    augmentation: what happens to row r in step s follows from (seed, s, r), so a resumed run sees the same images and
    the number of workers changes nothing. An image that turns out to be unreadable is left out of its batch and listed.
    A large batch is numbers only once, where it is given: workers share it and read about one more ahead, as bytes.
    as_bytes: leave it so, for who makes numbers of a part at a time.

    >>> pixels = numpy.zeros((3, 2, 2, 1), numpy.uint8)
    >>> dots = examples("dots", Stored(pixels), ["a/1", "b/1", "b/2"], ["a", "b", "b"])
    >>> batches = Batches(dots, Preparation((2, 2), channels=1), [[2, 0], [1]])
    >>> [batch.labels.tolist() for batch in batches.since(0)]
    [[1, 0], [1]]
    """

    examples: Examples
    preparation: Preparation
    drawn: Drawn = field(repr=False)
    augmentation: Augmentation | None = None
    seed: int = 0
    workers: int = 0
    as_bytes: bool = False

    def __post_init__(self) -> None:
        require_count("Batches", "seed", self.seed, least=0)
        require_count("Batches", "workers", self.workers, least=0)

    def since(self, step: int) -> Iterator[Batch]:
        """The batches from a step on."""
        pieces = _loaded(_Reading(self), _asked(self.drawn, step), self.workers)
        for first in pieces:
            yield self._whole(first, pieces)

    def _whole(self, first: "_Piece", others: "Iterator[_Piece]") -> Batch:
        """The batch of a piece and those that follow."""
        size, (channels, *shape) = first.asked.size, (self.preparation.channels, *self.preparation.size)
        if self.as_bytes:
            images = torch.empty(size, *shape, channels, dtype=torch.uint8)
        else:
            images = torch.empty(size, channels, *shape)
        rows: list[int] = []
        skipped: list[Skipped] = []
        for piece in chain([first], others):
            place = images[len(rows) : len(rows) + len(piece.rows)]
            place.copy_(piece.pixels if self.as_bytes else self.preparation.numbers(piece.pixels))
            rows += piece.rows
            skipped += piece.skipped
            if piece.asked.last:
                break
        kept = torch.tensor(rows, dtype=torch.int64)
        facts = images[: len(rows)], self.examples.labels[kept], kept, first.asked.step, tuple(skipped)
        return Batch(*facts, preparation=self.preparation if self.as_bytes else None)


@dataclass(frozen=True)
class _Asked:
    """Some rows of a batch, which has so many in all."""

    step: int
    rows: tuple[int, ...]
    size: int
    last: bool


def _asked(drawn: Drawn, step: int) -> Iterator[_Asked]:
    for number in count(step):
        try:
            rows = tuple(drawn[number])
        except IndexError:
            return
        for start in range(0, max(1, len(rows)), PIECE):
            end = start + PIECE
            yield _Asked(number, rows[start:end], len(rows), end >= len(rows))


@dataclass(frozen=True, eq=False)
class _Piece:
    """What could be read of what was asked for, in bytes: a quarter of the memory of the numbers they stand for."""

    asked: _Asked
    pixels: UInt8[Tensor, "n Y X C"]
    rows: tuple[int, ...]
    skipped: tuple[Skipped, ...]


class _Reading(Dataset):
    """A piece at a time: what a worker is asked for is a whole list of rows."""

    def __init__(self, batches: Batches) -> None:
        # Not `drawn`: a worker is told its rows.
        self.examples, self.preparation = batches.examples, batches.preparation
        self.augmentation, self.seed = batches.augmentation, batches.seed

    def __getitem__(self, index: _Asked) -> _Piece:
        images, rows, skipped = [], [], []
        for row in index.rows:
            try:
                pixels = self.preparation.fitted(self.examples.read(row, least=self.preparation.least))
            except Unreadable as error:
                skipped.append(Skipped(self.examples.items[row], str(error)))
                continue
            if self.augmentation is not None:
                pixels = self.augmentation(pixels, self.seed, index.step, row)
            images.append(pixels)
            rows.append(row)
        empty = numpy.zeros((0, *self.preparation.size, self.preparation.channels), numpy.uint8)
        return _Piece(index, torch.from_numpy(numpy.stack(images) if images else empty), tuple(rows), tuple(skipped))


def _loaded(reading: _Reading, asked: Iterator[_Asked], workers: int) -> Iterator[_Piece]:
    first = next(asked, None)
    if first is None:
        return
    loader = DataLoader(
        reading,
        sampler=chain([first], asked),
        batch_size=None,
        num_workers=workers,
        prefetch_factor=_ahead(first.size, workers) if workers else None,
        worker_init_fn=_deaf if workers else None,
        generator=torch.Generator(),  # or the loader would draw from the global one, and a resumed run from another
    )
    yield from loader


def _ahead(size: int, workers: int) -> int:
    """So many pieces of each worker that together they are about one batch."""
    least, most = AHEAD
    return min(most, max(least, -(-size // (PIECE * workers))))


def _deaf(worker: int) -> None:
    """Ctrl-C is for the parent, which then asks its workers to stop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def in_order(count: int, size: int) -> list[range]:
    """The rows 0 .. count - 1, in batches.

    >>> in_order(5, 2)
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    require_count("in_order", "size", size)
    return [range(start, min(start + size, count)) for start in range(0, count, size)]


@dataclass(frozen=True)
class Shuffled:
    """All rows in a new order each epoch, for ever, in batches of one size; the rest of an epoch begins the next.

    >>> drawn = Shuffled(6, size=3, seed=1)
    >>> sorted(drawn[0] + drawn[1])
    [0, 1, 2, 3, 4, 5]
    """

    count: int
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("count", "size"):
            require_count("Shuffled", name, getattr(self, name))

    def __getitem__(self, step: int, /) -> list[int]:
        start = step * self.size
        first, last = start // self.count, (start + self.size - 1) // self.count
        epochs = [
            numpy.random.default_rng((self.seed, epoch)).permutation(self.count) for epoch in range(first, last + 1)
        ]
        rows = numpy.concatenate(epochs).tolist()
        return rows[start - first * self.count :][: self.size]


def held(source: Examples, preparation: Preparation, *, workers: int = 0) -> Examples:
    """The same examples, decoded and resized once, in memory: rows x columns x channels bytes each.

    Unreadable ones are left out and listed. Worth it when every image is read many times.
    """
    require(len(source) > 0, "held", "examples", "not be empty", len(source))
    plain = Preparation(preparation.size, preparation.channels, 0.0, 1.0)
    rows: list[int] = []
    skipped = list(source.skipped)
    pixels = numpy.empty((len(source), *preparation.size, preparation.channels), numpy.uint8)
    for batch in Batches(source, plain, in_order(len(source), 64), workers=workers).since(0):
        end = len(rows) + len(batch.rows)
        pixels[len(rows) : end] = (batch.images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
        rows += batch.rows.tolist()
        skipped += batch.skipped
    kept = source.take(rows)
    names = [kept.identities[label] for label in kept.labels.tolist()]
    return examples(source.title, Stored(pixels[: len(rows)]), kept.items, names, skipped)
