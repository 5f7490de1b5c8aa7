"""Gradients of a large batch in the memory of a small one."""

from collections.abc import Callable

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from likewise.checks import refuse, require_count


def backward_in_chunks(
    network: nn.Module,
    images: Float[Tensor, "B C Y X"] | UInt8[Tensor, "B Y X C"],
    loss_of: Callable[[Tensor], Tensor],
    *,
    chunk: int,
    prepare: Callable[[Tensor], Tensor] = lambda images: images,
) -> tuple[Float[Tensor, ""], Float[Tensor, "B E"]]:
    """loss_of(network(images)).backward(), `chunk` images at a time; gives the loss and the embeddings.

    E = f(X) without a graph; g = dL/dE on the whole batch; then each chunk again with a graph, and f's gradient against
    its rows of g. The sum over chunks is the gradient of the whole batch, for one more forward pass. Both passes must
    agree: chance (dropout) is drawn alike in both, and BatchNorm in training, where a chunk is not its batch, is
    refused. prepare: what makes numbers of a chunk of images that are something smaller.

    >>> layer = nn.Sequential(nn.Flatten(), nn.Linear(2, 1, bias=False))
    >>> loss, _ = backward_in_chunks(layer, torch.ones(3, 1, 1, 2), lambda e: e.sum(), chunk=2)
    >>> layer[1].weight.grad
    tensor([[3., 3.]])

    Paper: Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, arXiv 2101.06983, section 3.2.
    """
    require_chunks(network, chunk)
    parts, chances = [], []
    with torch.no_grad():
        for part in images.split(chunk):
            chances.append(torch.get_rng_state())
            parts.append(network(prepare(part)))
    embeddings = torch.cat(parts).requires_grad_()
    loss = loss_of(embeddings)
    loss.backward()
    gradient = embeddings.grad
    if gradient is None:  # the loss is a constant, as with a batch of one identity
        gradient = torch.zeros_like(embeddings)
    with torch.random.fork_rng(devices=[]):
        for part, chance, rows in zip(images.split(chunk), chances, gradient.split(chunk), strict=True):
            torch.set_rng_state(chance)
            network(prepare(part)).backward(rows)
    return loss.detach(), embeddings.detach()


def require_chunks(network: nn.Module, chunk: int) -> None:
    """Refuse a network that would learn something else from chunks than from their batch."""
    require_count("backward_in_chunks", "chunk", chunk)
    for name, module in network.named_modules():
        if isinstance(module, _BatchNorm) and module.training:
            hint = 'Build the network with norm="lrn", or take the whole batch at once.'
            refuse("backward_in_chunks", "network", "have no BatchNorm in training", name, hint)
