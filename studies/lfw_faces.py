"""A small network for LFW's faces: how they are cut, changed by chance, trained on and embedded."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.data import Batch, Examples
from likewise.data.batches import Drawn
from likewise.data.examples import Stored
from likewise.metric import IdentitySampler
from likewise.networks import Network
from likewise.networks.resnet import basic, normed
from likewise.networks.segments import UnitLength
from likewise.training import Classes, Cosine, EveryTriplet, Record, train

ROWS, COLUMNS = 64, 48
CANVAS = 74  # rows and columns; the middle 64 x 48 of them is what the network sees of an unchanged face
CHUNK = 256


@dataclass(frozen=True)
class Recipe:
    """What one training does; angles in radians, moves in parts of the canvas, light in deviations of the pixels."""

    width: int = 32
    dropout: float = 0.2
    decay: float = 0.05
    # classes
    epochs: int = 40
    batch: int = 128
    most: int = 15  # images of a person in an epoch
    scale: float = 24.0
    margin: float = 0.2
    peak: float = 2e-3
    # triplets
    rounds: int = 6
    people: int = 40
    faces: int = 4
    others: int = 24
    distance: float = 0.2
    last: float = 5e-4
    # changes by chance
    turn: float = 0.14
    zoom: float = 0.10
    move: float = 0.06
    light: float = 0.3
    hide: float = 0.3  # the chance that a rectangle is covered
    seed: int = 0


class FaceNetwork(Network):
    """A 5x5 and two residual blocks, each halving the image, then a linear layer that knows where in the face it looks.

    Arithmetic is bfloat16 but for the norms and the last layers: half the time, where the processor has it.
    """

    def __init__(self, width: int, *, dropout: float = 0.2, embedding_dim: int = 128) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.stem = nn.Sequential(*normed(3, width, 5, 2), nn.ReLU())
        self.blocks = nn.Sequential(basic(width, 2 * width), basic(2 * width, 4 * width))
        places = 4 * width * (ROWS // 8) * (COLUMNS // 8)
        self.embedding = nn.Sequential(
            nn.BatchNorm2d(4 * width),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(places, embedding_dim, bias=False),
            nn.BatchNorm1d(embedding_dim),
        )
        self.unit = UnitLength()
        self.to(memory_format=torch.channels_last)  # ty: ignore[no-matching-overload]

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [("stem", self.stem), ("blocks", self.blocks), ("embedding", self.embedding), ("unit", self.unit)]

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            x = self.embedding(self.blocks(self.stem(x)))
        return self.unit(x.float())


class Bias(nn.Module):
    """y = x + b, one number for each channel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.bias.view(-1, *[1] * (x.dim() - 2))


def without_norms(network: nn.Module) -> None:
    """Put a bias in the place of every BatchNorm, as the layer before would have had without it."""
    for module in list(network.modules()):
        for name, child in module.named_children():
            if isinstance(child, nn.BatchNorm1d | nn.BatchNorm2d):
                setattr(module, name, Bias(child.num_features))


def canvases(some: Examples) -> Tensor:
    """All faces as (N, 3, CANVAS, CANVAS) bytes."""
    assert isinstance(some.source, Stored)
    found = torch.empty(len(some), 3, CANVAS, CANVAS, dtype=torch.uint8)
    for start in range(0, len(some), CHUNK):
        pixels = torch.from_numpy(some.source.images[start : start + CHUNK]).permute(0, 3, 1, 2).float()
        small = functional.interpolate(pixels, size=(CANVAS, CANVAS), mode="bilinear", antialias=True)
        found[start : start + CHUNK] = small.round().clamp(0, 255).byte()
    return found


def centre(faces: Tensor) -> Tensor:
    """The middle of canvases, unchanged, each with mean 0 and deviation 1."""
    top, left = (CANVAS - ROWS) // 2, (CANVAS - COLUMNS) // 2
    return evened(faces[:, :, top : top + ROWS, left : left + COLUMNS].float())


def evened(pixels: Tensor) -> Tensor:
    """(v - mean) / (deviation + 8): exposure and contrast are of the picture, not of the person."""
    mean, deviation = pixels.mean((1, 2, 3), keepdim=True), pixels.std((1, 2, 3), keepdim=True)
    return ((pixels - mean) / (deviation + 8)).contiguous(memory_format=torch.channels_last)


def changed(faces: Tensor, recipe: Recipe, generator: torch.Generator) -> Tensor:
    """The middle of canvases after a turn, a zoom, a move and perhaps a mirror; other light; perhaps a part hidden."""
    number = len(faces)

    def within(most: float) -> Tensor:
        return (2 * torch.rand(number, generator=generator) - 1) * most

    angle, zoom, mirror = within(recipe.turn), 1 + within(recipe.zoom), 1 - 2 * (within(1) > 0).float()
    cosine, sine = zoom * angle.cos(), zoom * angle.sin()
    down, across = ROWS / CANVAS, COLUMNS / CANVAS
    rows = [[cosine * across * mirror, -sine * down, within(recipe.move)]]
    rows += [[sine * across * mirror, cosine * down, within(recipe.move)]]
    map_ = torch.stack([torch.stack(row, 1) for row in rows], 1)
    grid = functional.affine_grid(map_, [number, 3, ROWS, COLUMNS], align_corners=False)
    x = evened(functional.grid_sample(faces.float(), grid, padding_mode="reflection", align_corners=False))
    tint = recipe.light / 3 * torch.randn(number, 3, 1, 1, generator=generator)
    from_side = torch.linspace(-1, 1, COLUMNS) * within(recipe.light)[:, None, None, None]
    from_above = torch.linspace(-1, 1, ROWS)[:, None] * within(recipe.light)[:, None, None, None]
    x = x * (1 + within(recipe.light))[:, None, None, None] + tint + from_side + from_above
    return _hidden(x, recipe.hide, generator).contiguous(memory_format=torch.channels_last)


def _hidden(x: Tensor, chance: float, generator: torch.Generator) -> Tensor:
    """A rectangle of a sixth to a half of the rows and of the columns in one grey, in some of the images."""
    hit, tall, wide, top, left = torch.rand(5, len(x), generator=generator)
    grey = torch.randn(len(x), 1, 1, 1, generator=generator) / 2
    down, across = torch.arange(ROWS), torch.arange(COLUMNS)
    tall, wide = ROWS * (1 + 2 * tall) / 6, COLUMNS * (1 + 2 * wide) / 6
    top, left = top * (ROWS - tall), left * (COLUMNS - wide)
    inside_rows = (down >= top[:, None]) & (down < (top + tall)[:, None])
    inside = inside_rows[:, :, None] & ((across >= left[:, None]) & (across < (left + wide)[:, None]))[:, None]
    return torch.where((inside & (hit < chance)[:, None, None])[:, None], grey, x)


@dataclass(frozen=True, eq=False)
class Portraits:
    """Batches for `train`: the rows that are drawn for each step, every face changed anew."""

    faces: Tensor
    labels: Tensor
    drawn: Drawn
    recipe: Recipe

    def since(self, step: int) -> Iterator[Batch]:
        for number in count(step):
            rows = torch.tensor(self.drawn[number])
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + number)
            yield Batch(changed(self.faces[rows], self.recipe, generator), self.labels[rows], rows, number)


class Capped:
    """Every epoch at most so many images of a person, in a new order; a last batch that is not full is left out."""

    def __init__(self, labels: Tensor, *, most: int, size: int, seed: int) -> None:
        self.labels, self.most, self.size, self.seed = labels, most, size, seed
        self.epoch = lru_cache(1)(self._epoch)

    def __len__(self) -> int:
        """Steps of an epoch."""
        return max(1, int(self.labels.bincount().clamp(max=self.most).sum()) // self.size)

    def __getitem__(self, step: int, /) -> list[int]:
        number, place = divmod(step, len(self))
        return self.epoch(number)[place * self.size :][: self.size]

    def _epoch(self, number: int) -> list[int]:
        order = numpy.random.default_rng((self.seed, number)).permutation(len(self.labels)).tolist()
        seen, kept = Counter(), []
        for row, label in zip(order, self.labels[order].tolist(), strict=True):
            seen[label] += 1
            if seen[label] <= self.most:
                kept.append(row)
        return kept


class Grouped:
    """Several images of each of some people, and some of anybody: what triplets need."""

    def __init__(self, labels: Tensor, recipe: Recipe) -> None:
        self.sampler = IdentitySampler(
            labels, identities=recipe.people, faces=recipe.faces, random=recipe.others, seed=recipe.seed
        )

    def __len__(self) -> int:
        """Steps of an epoch."""
        return len(self.sampler)

    def __getitem__(self, step: int, /) -> list[int]:
        epoch, batch = divmod(step, len(self))
        return self.sampler.rows(epoch=epoch, batch=batch)


def trained(some: Examples, faces: Tensor, recipe: Recipe, *, say: Callable[[str], None]) -> FaceNetwork:
    """A network that tells people apart: first by their classes, with a margin, then by triplets.

    faces: the canvases of `some`. Classes are of people with two images at least; people with one are among the
    negatives of triplets.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        network = FaceNetwork(recipe.width, dropout=recipe.dropout)
    several = some.with_at_least(2)
    people = len(several.identities)
    classes = Classes(network.embedding_dim, people, scale=recipe.scale, margin=recipe.margin, seed=recipe.seed)
    capped = Capped(several.labels, most=recipe.most, size=recipe.batch, seed=recipe.seed)
    portraits = Portraits(faces[some.rows(several.items)], several.labels, capped, recipe)
    _phase("classes", network, classes, portraits, len(capped), recipe.epochs, recipe.peak, recipe.decay, say)
    grouped = Grouped(some.labels, recipe)
    portraits = Portraits(faces, some.labels, grouped, recipe)
    triplets = EveryTriplet(margin=recipe.distance)
    _phase("triplets", network, triplets, portraits, len(grouped), recipe.rounds, recipe.last, recipe.decay, say)
    return network


def _phase(
    name: str,
    network: FaceNetwork,
    objective: nn.Module,
    portraits: Portraits,
    steps: int,
    epochs: int,
    peak: float,
    decay: float,
    say: Callable[[str], None],
) -> None:
    losses: list[float] = []
    started = time.perf_counter()

    def watch(record: Record) -> None:
        losses.append(record.loss)
        if (record.step + 1) % (5 * steps) == 0 or record.step + 1 == epochs * steps:
            mean, elapsed = sum(losses[-steps:]) / steps, time.perf_counter() - started
            say(f"{name}, epoch {(record.step + 1) // steps} of {epochs}: loss {mean:.3f}, {elapsed:.0f} s")

    if epochs:
        schedule = Cosine(peak=peak, decay=decay)
        seed = portraits.recipe.seed
        train(network, objective, portraits, steps=epochs * steps, schedule=schedule, seed=seed, watch=watch)


def embedded(network: Network, faces: Tensor) -> Tensor:
    """The sum of what a network says of each face and of its mirror image, at length 1."""
    network.eval()
    found = []
    with torch.no_grad():
        for part in faces.split(CHUNK):
            x = centre(part)
            found.append(network(x) + network(x.flip(3).contiguous(memory_format=torch.channels_last)))
    return functional.normalize(torch.cat(found))
