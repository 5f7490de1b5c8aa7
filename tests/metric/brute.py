"""Every triplet by its definition: three loops, exact distances."""

from itertools import product

import torch
from hypothesis import strategies as st
from torch import Tensor


def exact_distances(embeddings: Tensor) -> list[list[float]]:
    """Squared distances from differences."""
    return (embeddings[:, None] - embeddings[None]).double().square().sum(-1).tolist()


def all_triplets(labels: list[int]) -> list[tuple[int, int, int]]:
    """(anchor, positive, negative)."""
    rows = range(len(labels))
    return [
        (a, p, n)
        for a, p, n in product(rows, rows, rows)
        if a != p and labels[a] == labels[p] and labels[a] != labels[n]
    ]


def batch_all(embeddings: Tensor, labels: Tensor, margin: float) -> tuple[Tensor, int]:
    """The differentiable sum over active triplets, and how many there are."""
    d = (embeddings[:, None] - embeddings[None]).square().sum(-1)
    terms = [d[a, p] - d[a, n] + margin for a, p, n in all_triplets(labels.tolist())]
    active = [term for term in terms if term > 0]
    return sum(active, embeddings.new_zeros(()) * embeddings.sum()), len(active)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Small batches on a coarse lattice, so that distances tie often, and sometimes anywhere; float64."""
    count, width = draw(st.integers(0, 12)), draw(st.integers(1, 3))
    labels = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    seed = draw(st.integers(0, 10**6))
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, width, generator=generator, dtype=torch.float64)
    if draw(st.booleans()):
        x = (x * 2).round() / 2
    return x, torch.tensor(labels, dtype=torch.int64)
