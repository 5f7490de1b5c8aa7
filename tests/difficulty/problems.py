"""Small trained-looking problems: blobs that overlap, and a random network on them."""

import torch
from torch import Generator, Tensor, nn

CLASSES, WIDTH, TRAIN, TEST = 3, 5, 61, 23


def network(seed: int = 0, *, dtype: torch.dtype = torch.float32, classes: int = CLASSES) -> nn.Sequential:
    """Two hidden layers, drawn by chance, in evaluation mode."""
    generator = Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(WIDTH, 11), nn.ReLU(), nn.Linear(11, 7), nn.ReLU(), nn.Linear(7, classes))
    for weight in model.parameters():
        weight.data = torch.randn(weight.shape, generator=generator) / weight.shape[-1] ** 0.5
    return model.to(dtype).eval()


def examples(count: int, seed: int, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Inputs around the centre of their class."""
    generator = Generator().manual_seed(seed)
    centres = 1.2 * torch.eye(WIDTH)[:CLASSES]
    labels = torch.randint(CLASSES, (count,), generator=generator)
    return (centres[labels] + torch.randn(count, WIDTH, generator=generator)).to(dtype), labels


def fitted(seed: int = 0) -> nn.Sequential:
    """The network after some steps on its examples, so that depths differ."""
    model, (x, labels) = network(seed), examples(TRAIN, seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    for _ in range(30):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimiser.step()
    model.zero_grad()
    return model.eval()
