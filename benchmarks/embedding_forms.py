"""Our NN4, answering benchmarks/embedding.py."""

import torch
from torch import Tensor, nn

from benchmarks.embedding_problem import AS_MADE, COUNT, LAST, images
from benchmarks.harness.worker import Run, serve
from likewise.cost import cost
from likewise.networks import Network, build_network, for_inference
from likewise.networks.inception import ResponseNorm

SIDE = 96


def network() -> Network:
    """NN4 as `likewise.networks.load_network` and training have it: channels last."""
    return build_network("nn4", {}).eval()


def plain_network() -> Network:
    """The same weights and none of what makes it fast: to check by."""
    made = network().to(memory_format=torch.contiguous_format)  # ty: ignore[no-matching-overload]
    for name, part in made.named_modules():
        if isinstance(part, ResponseNorm):
            made.set_submodule(name, nn.LocalResponseNorm(5, alpha=part.alpha))
    return made


def runs() -> dict[str, Run]:
    """Embeddings by task."""
    made, plain = network(), plain_network()
    ready = for_inference(made)

    @torch.inference_mode()
    def embed(x: Tensor) -> tuple[Tensor]:
        return (ready(x.contiguous(memory_format=torch.channels_last)),)

    @torch.inference_mode()
    def embed_plainly(x: Tensor) -> tuple[Tensor]:
        return (plain(x),)

    def count(x: Tensor) -> tuple[Tensor]:
        return (torch.tensor([[cost(made, x[:1].to("meta")).macs]], dtype=torch.float64),)

    return {LAST: embed, AS_MADE: embed_plainly, COUNT: count}


if __name__ == "__main__":
    serve(f"likewise, torch {torch.__version__}", runs, lambda number: images(number, SIDE))
