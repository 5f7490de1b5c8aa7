"""facenet-pytorch's InceptionResnetV1, answering benchmarks/embedding.py. Runs in the peers' environment.

The package imports torchvision and requests for its face detector and its downloads, neither of which is measured:
empty modules stand for them.
"""

import sys
from importlib.metadata import version
from types import ModuleType

import torch
from torch import Tensor

from benchmarks.embedding_problem import AS_MADE, COUNT, LAST, images
from benchmarks.harness.worker import Run, serve
from likewise.cost import cost

SIDE = 160
UNUSED = {
    "torchvision": {"transforms": None},
    "torchvision.transforms": {"functional": None},
    "torchvision.transforms.functional": {},
    "torchvision.ops": {},
    "torchvision.ops.boxes": {"batched_nms": None},
    "requests": {},
    "requests.adapters": {"HTTPAdapter": None},
}


def runs() -> dict[str, Run]:
    """Embeddings by task: as the package makes its network, and in the layout that suits a CPU."""
    for name, content in UNUSED.items():
        module = ModuleType(name)
        module.__dict__.update(content, __path__=[])
        sys.modules[name] = module
    from facenet_pytorch import InceptionResnetV1  # ty: ignore[import-not-found]

    torch.manual_seed(0)
    made, last = InceptionResnetV1().eval(), InceptionResnetV1().eval().to(memory_format=torch.channels_last)

    @torch.inference_mode()
    def embed(x: Tensor) -> tuple[Tensor]:
        return (made(x),)

    @torch.inference_mode()
    def embed_last(x: Tensor) -> tuple[Tensor]:
        return (last(x.contiguous(memory_format=torch.channels_last)),)

    def count(x: Tensor) -> tuple[Tensor]:
        return (torch.tensor([[cost(made, x[:1].to("meta")).macs]], dtype=torch.float64),)

    return {AS_MADE: embed, LAST: embed_last, COUNT: count}


if __name__ == "__main__":
    about = f"facenet-pytorch {version('facenet-pytorch')}, torch {torch.__version__}"
    serve(about, runs, lambda number: images(number, SIDE))
