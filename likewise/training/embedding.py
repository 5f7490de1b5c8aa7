"""Examples -> embeddings, with a network that is not being trained."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require_count
from likewise.cost import Uncounted, cost
from likewise.data import Batches, Examples, Preparation, Skipped
from likewise.data.batches import in_order
from likewise.networks import Network, for_inference
from likewise.progress import Progress, silent

# Numbers in memory at a time, 64 MB. One image at a time leaves a CPU idle between layers, and hundreds fall out of its
# cache: of batches of 1 to 256, the largest that this allows came within 6 % of the best for NN2, NN4, NNS2, ResNets.
ROOM, MOST, USUAL = 2**24, 128, 32


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
    examples: Examples,
    *,
    size: int | None = None,
    workers: int = 0,
    progress: Progress = silent,
) -> Embedded:
    """network(images) of all examples, `size` at a time, by its form `for_inference`; the network stays as it is.

    size: `images_at_once` unless given; it changes vectors by no more than rounding.
    """
    if size is None:
        size = images_at_once(network, preparation)
    require_count("embed_examples", "size", size)
    device = next(network.parameters()).device
    ready = for_inference(network)
    vectors: list[Tensor] = []
    rows: list[Tensor] = [torch.zeros(0, dtype=torch.int64)]
    skipped: list[Skipped] = []
    steps = in_order(len(examples), size)
    for batch in Batches(examples, preparation, steps, workers=workers).since(0):
        if len(batch.rows):
            with torch.no_grad():
                images = batch.images.to(device, memory_format=torch.channels_last)
                vectors.append(ready(images))
        rows.append(batch.rows)
        skipped += batch.skipped
        progress((batch.step + 1) / len(steps), "embedding images")
    found = torch.cat(rows)
    whole = torch.cat(vectors) if vectors else torch.zeros(0, network.embedding_dim, device=device)
    return Embedded(whole, examples.labels[found], found, tuple(skipped))


def images_at_once(network: Network, preparation: Preparation) -> int:
    """How many images a network embeds best at a time: a power of two, from what one image takes by `likewise.cost`.

    >>> from likewise.networks import build_network
    >>> images_at_once(build_network("nn4", {}), Preparation((96, 96)))
    16
    """
    device = next(network.parameters()).device
    was = network.training
    network.eval()
    try:
        with torch.no_grad():
            one = cost(network, torch.empty(1, preparation.channels, *preparation.size, device=device))
    except Uncounted:
        return USUAL
    finally:
        network.train(was)
    images = max(1, ROOM // (one.peak - one.params))
    return min(MOST, 1 << (images.bit_length() - 1))
