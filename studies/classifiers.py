"""Residual networks for the studies of difficulty and of exits, trained on pictures that are in memory.

A training costs minutes, so it keeps a checkpoint, and the finished network stays in a folder: the same call goes on,
or only reads.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor, nn

from likewise.data import Batch, Examples, Preparation
from likewise.data.arrays import cifar10, idx
from likewise.data.batches import Shuffled
from likewise.networks import Network, build_classifier, load_classifier, save_classifier
from likewise.training import CheckpointPolicy, Record, train
from likewise.training.objectives import Logits

FASHION = Path(os.environ.get("LIKEWISE_FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))  # where Debian puts it
CIFAR = os.environ.get("LIKEWISE_CIFAR10", "")
CLASSES = 10
SHIFT = 4  # pixels, at most
Say = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images as bytes, their labels, and how a network takes them."""

    images: UInt8[Tensor, "N C Y X"]
    labels: Int64[Tensor, "N"]
    preparation: Preparation

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> Tensor:
        """All of them, as a network takes them."""
        return self.values(self.images)

    def values(self, images: Tensor) -> Tensor:
        """Bytes as a network takes them."""
        return (images / 255 - self.preparation.mean) / self.preparation.deviation

    def take(self, rows: Int64[Tensor, "n"]) -> "Pictures":
        """Some of them."""
        return replace(self, images=self.images[rows], labels=self.labels[rows])

    def labelled(self, labels: Int64[Tensor, "N"]) -> "Pictures":
        """The same images with other labels."""
        return replace(self, labels=labels)


def fashion() -> tuple[Pictures, Pictures]:
    """Fashion-MNIST, training and test."""
    return _pictures(idx(FASHION, split="train")), _pictures(idx(FASHION, split="test"))


def cifar() -> tuple[Pictures, Pictures]:
    """CIFAR-10, training and test, in the order of its files."""
    return _pictures(cifar10(CIFAR, split="train")), _pictures(cifar10(CIFAR, split="test"))


def _pictures(some: Examples) -> Pictures:
    pixels = numpy.stack([some.read(row) for row in range(len(some))])
    rows, columns, channels = pixels.shape[1:]
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous()
    return Pictures(images, some.labels, Preparation((rows, columns), channels=channels))


@dataclass(frozen=True, eq=False)
class Moved:
    """Batches of pictures, each mirrored by a coin and moved by chance; what happens follows from seed and step.

    still: they are left as they are.
    """

    pictures: Pictures
    size: int = 128
    seed: int = 0
    still: bool = False

    def since(self, step: int) -> Iterator[Batch]:
        drawn = Shuffled(len(self.pictures), self.size, self.seed)
        while True:
            rows = torch.tensor(drawn[step])
            chance = torch.Generator().manual_seed((self.seed << 32) + step)
            images = self.pictures.images[rows]
            images = images if self.still else moved(images, chance)
            yield Batch(self.pictures.values(images), self.pictures.labels[rows], rows, step)
            step += 1


def moved(images: UInt8[Tensor, "B C Y X"], chance: torch.Generator) -> UInt8[Tensor, "B C Y X"]:
    """Each image mirrored or not, and moved up to `SHIFT` pixels each way over a black ground."""
    count, channels, height, width = images.shape
    ground = nn.functional.pad(images, (SHIFT,) * 4)
    down, right = torch.randint(2 * SHIFT + 1, (2, count, 1), generator=chance)
    columns = torch.arange(width).expand(count, width)
    columns = torch.where(torch.rand(count, 1, generator=chance) < 0.5, columns, columns.flip(1)) + right
    rows = torch.arange(height) + down
    picture = torch.arange(count)[:, None, None, None]
    return ground[picture, torch.arange(channels)[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]


@dataclass(frozen=True)
class Momentum:
    """Gradient descent with Nesterov's momentum; the rate rises in a line, then falls in a line to 0."""

    peak: float = 0.2
    warmup: float = 0.2
    decay: float = 5e-4

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=self.peak, momentum=0.9, nesterov=True, weight_decay=self.decay)

    def rate(self, step: int, steps: int) -> float:
        return self.peak * min((step + 1) / (self.warmup * steps), (steps - step) / ((1 - self.warmup) * steps))


@dataclass(frozen=True)
class Recipe:
    """How a network is trained: float32 weights, products in bfloat16; still: images are not moved."""

    epochs: int
    batch: int = 128
    seed: int = 0
    still: bool = False

    def steps(self, count: int) -> int:
        """Batches for so many pictures."""
        return round(self.epochs * count / self.batch)


def trained(name: str, title: str, pictures: Pictures, recipe: Recipe, *, folder: Path, say: Say) -> Network:
    """A classifier by name from `folder`, or else trained there; `title` says on what, and names the file."""
    stem = f"{title}-{name}-{recipe.epochs}-{recipe.seed}"
    done = folder / f"{stem}.safetensors"
    if not done.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        network = build_classifier(name, channels=pictures.preparation.channels, num_classes=CLASSES, seed=recipe.seed)
        with halved():
            train(
                network,
                Logits(),
                Moved(pictures, recipe.batch, recipe.seed, recipe.still),
                steps=recipe.steps(len(pictures)),
                schedule=Momentum(),
                keep=kept(folder, stem, name, recipe),
                resume=True,
                seed=recipe.seed,
                watch=told(say, stem, recipe.steps(len(pictures))),
            )
        classes = [str(number) for number in range(CLASSES)]
        save_classifier(network, done, name=name, classes=classes, preparation=pictures.preparation, trained_on=title)
    return load_classifier(done).network


def halved() -> torch.autocast:
    """Products in bfloat16. Nothing is kept from one step to the next: weights change in between."""
    return torch.autocast("cpu", torch.bfloat16, cache_enabled=False)


def kept(folder: Path, stem: str, name: str, recipe: Recipe) -> CheckpointPolicy:
    """Where a training is kept."""
    settings = json.loads(json.dumps({"name": name, **asdict(recipe)}))
    return CheckpointPolicy(folder / f"{stem}.checkpoint", folder / f"{stem}.jsonl", 100, settings)


def told(say: Say, stem: str, steps: int) -> Callable[[Record], None]:
    """A line for every hundredth step."""

    def watch(record: Record) -> None:
        if (record.step + 1) % 100 == 0 or record.step + 1 == steps:
            say(f"{stem}, step {record.step + 1:,} of {steps:,}: loss {record.loss:.3f}")

    return watch
