"""Text and images that come with the installed packages, and small networks that learn them."""

import ast
import math
import os
from collections.abc import Callable
from collections.abc import Generator as Yields
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn
from torch.nn import functional

from likewise.checks import require
from likewise.networks import ByteModel, vit, with_attends
from likewise.progress import Progress, silent
from likewise.tour.combinations import Window

LIBRARY = Path(os.__file__).parent
FOREIGN = {"site-packages", "dist-packages", "test", "tests", "__pycache__"}  # not the library's own, or no prose
HELD_OUT = 10  # every tenth file is kept from training


@dataclass(frozen=True)
class Text:
    """Bytes to learn from and bytes to be judged by, of different files."""

    train: Int[Tensor, " n"]
    test: Int[Tensor, " m"]
    files: int


@dataclass(frozen=True)
class Images:
    """Digits to learn from and digits to be judged by; pixels from -1 (paper) to 1 (ink)."""

    train: Float[Tensor, "n 1 8 8"]
    train_labels: Int[Tensor, " n"]
    test: Float[Tensor, "m 1 8 8"]
    test_labels: Int[Tensor, " m"]


def library_text(folder: Path = LIBRARY) -> Text:
    """The documentation strings of every Python file below a folder, read and never run, in the order of file names."""
    files = sorted(path for path in folder.rglob("*.py") if not FOREIGN & set(path.relative_to(folder).parts[:-1]))
    texts = [text for text in (docstrings(path.read_text("utf-8", "replace")) for path in files) if text]
    require(len(texts) > 1, "library_text", "folder", "hold two documented Python files or more", len(texts))
    test = [text for number, text in enumerate(texts) if number % HELD_OUT == 0]
    train = [text for number, text in enumerate(texts) if number % HELD_OUT != 0]
    return Text(_bytes(train), _bytes(test), len(texts))


def docstrings(source: str) -> str:
    r"""The documentation strings of a module, its classes and its functions, an empty line between them.

    >>> docstrings("'''Over.'''\ndef f():\n    '''Under.'''\n")
    'Over.\n\nUnder.'
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a file of another Python, or a sample of a bad one
        return ""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return "\n\n".join(text for text in found if text)


def digit_images(*, held_out: int, generator: Generator) -> Images:
    """scikit-learn's 1,797 digits in a drawn order, the last of them held out."""
    from sklearn.datasets import load_digits

    pixels, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    rule = f"be below the number of images, {len(labels)}"
    require(0 < held_out < len(labels), "digit_images", "held_out", rule, held_out)
    order = torch.randperm(len(labels), generator=generator)
    images, labels = (pixels / 8 - 1).float().view(-1, 1, 8, 8)[order], labels[order].long()
    return Images(images[:-held_out], labels[:-held_out], images[-held_out:], labels[-held_out:])


def _bytes(texts: list[str]) -> Int[Tensor, " n"]:
    return torch.frombuffer(bytearray("\n\n".join(texts), "utf-8"), dtype=torch.uint8).long()


Model = TypeVar("Model", bound=nn.Module)

MUON = 5.0  # its rate, as a multiple of the other
WARM_UP = 0.05  # the part of the steps in which the rate rises
# Up to which part of the steps attention reaches how far back. Who may look everywhere from the start learns for long
# no more than which byte follows which; who looks near first learns words, and then where else to look.
REACHES = (0.3, 8), (0.5, 32)


@dataclass(frozen=True)
class Recipe:
    """A network's size and how long it learns."""

    num_layers: int
    num_heads: int
    dim: int
    steps: int
    batch: int
    rate: float


def learn_text(
    text: Int[Tensor, " n"], *, context: int, recipe: Recipe, seed: int, progress: Progress = silent
) -> ByteModel:
    """A byte model trained on windows from anywhere in the text; its attention reaches farther as it learns."""
    generator = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = ByteModel(context=context, dim=recipe.dim, num_layers=recipe.num_layers, num_heads=recipe.num_heads)

    layers = range(recipe.num_layers)
    steps = count()
    nearsighted = [(until, with_attends(model, [Window(reach) for _ in layers])) for until, reach in REACHES]

    def loss() -> Tensor:
        done = next(steps) / recipe.steps
        seer = next((other for until, other in nearsighted if done < until), model)
        starts = torch.randint(len(text) - context, (recipe.batch, 1), generator=generator)
        windows = text[starts + torch.arange(context + 1)]
        return functional.cross_entropy(seer(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())

    return descend(model, loss, recipe, progress)


def learn_images(
    images: Images, *, patch_size: int, recipe: Recipe, seed: int, progress: Progress = silent
) -> nn.Module:
    """A vision transformer trained to name digits."""
    generator = torch.Generator().manual_seed(seed)
    with seeded(seed):
        model = vit(
            8,
            patch_size=patch_size,
            channels=1,
            dim=recipe.dim,
            num_layers=recipe.num_layers,
            num_heads=recipe.num_heads,
            num_classes=10,
        )

    def loss() -> Tensor:
        chosen = torch.randint(len(images.train), (recipe.batch,), generator=generator)
        return functional.cross_entropy(model(images.train[chosen]), images.train_labels[chosen])

    return descend(model, loss, recipe, progress)


def descend(model: Model, loss: Callable[[], Tensor], recipe: Recipe, progress: Progress) -> Model:
    """Minimise what `loss` draws; the model comes back in eval mode.

    Muon moves the matrices of the blocks, AdamW the rest: half as many steps as AdamW alone needs for the same loss.
    """
    matrices = [weight for name, weight in model.named_parameters() if "blocks." in name and weight.dim() == 2]
    others = [weight for name, weight in model.named_parameters() if "blocks." not in name or weight.dim() != 2]
    optimizers = (
        torch.optim.Muon(matrices, lr=MUON * recipe.rate, weight_decay=0.0),
        torch.optim.AdamW(others, lr=recipe.rate, betas=(0.9, 0.95), weight_decay=0.01),
    )
    schedules = [torch.optim.lr_scheduler.LambdaLR(each, lambda step: pace(step, recipe.steps)) for each in optimizers]
    model.train()
    for step in range(recipe.steps):
        model.zero_grad()
        loss().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for each in (*optimizers, *schedules):
            each.step()
        progress((step + 1) / recipe.steps, f"training, step {step + 1} of {recipe.steps}")
    return model.eval()


def pace(step: int, steps: int) -> float:
    """The learning rate at a step, as a part of its peak: up in a line, down in a cosine.

    >>> pace(0, 100), pace(4, 100), round(pace(99, 100), 2)  # 5 steps up
    (0.2, 1.0, 0.0)
    """
    warm = max(round(WARM_UP * steps), 1)
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step + 1 - warm) / max(steps - warm, 1))) / 2


@contextmanager
def seeded(seed: int) -> Yields[None, None, None]:
    """Let modules draw their first weights from a seed, and leave the global generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def bits_per_byte(model: nn.Module, windows: Int[Tensor, "B T1"]) -> float:
    """-log2 p(next byte), mean over all positions of all windows, whose last byte is only asked for."""
    logits: Float[Tensor, "B T C"] = model(windows[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1).double(), windows[:, 1:].flatten()).item() / math.log(2)


def accuracy(model: nn.Module, images: Float[Tensor, "B C Y X"], labels: Int[Tensor, " B"]) -> float:
    """The share of images that are named right."""
    return (model(images).argmax(-1) == labels).double().mean().item()
