"""Examples -> embeddings, with a network that is not being trained."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require_count
from likewise.data import Batches, Examples, Preparation, Skipped, in_order
from likewise.networks import Network


@dataclass(frozen=True, eq=False)
class Embedded:
    """The vector of each example that could be read, its label, and which row of the examples it is."""

    vectors: Float[Tensor, "N E"]
    labels: Int64[Tensor, "N"]
    rows: Int64[Tensor, "N"]
    skipped: tuple[Skipped, ...] = ()


def embed_examples(
    network: Network,
    preparation: Preparation,
    some: Examples,
    *,
    size: int = 128,
    workers: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Embedded:
    """network(images) of all examples, `size` at a time, in evaluation mode and without a graph; the mode is put back.

    progress: told the part that is done, from 0 to 1.
    """
    require_count("embed_examples", "size", size)
    device = next(network.parameters()).device
    was = network.training
    vectors = [torch.zeros(0, network.embedding_dim, device=device)]
    rows: list[Tensor] = [torch.zeros(0, dtype=torch.int64)]
    skipped: list[Skipped] = []
    steps = in_order(len(some), size)
    network.eval()
    try:
        for batch in Batches(some, preparation, steps, workers=workers).since(0):
            if len(batch.rows):
                with torch.no_grad():
                    vectors.append(network(batch.images.to(device)))
            rows.append(batch.rows)
            skipped += batch.skipped
            if progress:
                progress((batch.step + 1) / len(steps))
    finally:
        network.train(was)
    found = torch.cat(rows)
    return Embedded(torch.cat(vectors), some.labels[found], found, tuple(skipped))
