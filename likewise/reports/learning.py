"""Training the small networks whose attention is looked at: one loop, a warm start and a cosine to the end."""

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from likewise.networks import ByteModel, vit, with_attends
from likewise.progress import Progress, silent
from likewise.reports.combinations import Window
from likewise.reports.corpus import Images

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
def seeded(seed: int) -> Generator[None, None, None]:
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
