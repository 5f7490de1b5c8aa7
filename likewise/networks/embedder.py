"""Any network that ends in a row of numbers -> embeddings of length 1."""

from jaxtyping import Float
from torch import Tensor, nn

from likewise.checks import require_choice, require_count
from likewise.networks.facenet import UnitLength
from likewise.networks.resnet import resnet8, resnet14, resnet20, resnet32, resnet50, resnet56
from likewise.networks.segments import Network

BODIES = {
    "resnet8": resnet8,
    "resnet14": resnet14,
    "resnet20": resnet20,
    "resnet32": resnet32,
    "resnet50": resnet50,
    "resnet56": resnet56,
}


def embedder(body: str = "resnet8", *, channels: int = 3, embedding_dim: int = 64) -> "Embedder":
    """A residual network without a head, a linear layer to `embedding_dim`, and length 1: for small images.

    >>> import torch
    >>> model = embedder("resnet8", channels=1, embedding_dim=5).eval()
    >>> model(torch.rand(3, 1, 8, 8)).norm(dim=1).allclose(torch.ones(3)), [name for name, _ in model.segments][-3:]
    (True, ['embedding', 'projection', 'unit'])
    """
    require_choice("embedder", "body", body, tuple(BODIES))
    require_count("embedder", "embedding_dim", embedding_dim)
    return Embedder(BODIES[body](channels=channels), embedding_dim)


class Embedder(Network):
    """A body, a linear layer, and division by the length."""

    def __init__(self, body: Network, embedding_dim: int) -> None:
        super().__init__()
        self.body, self.embedding_dim = body, embedding_dim
        self.projection = nn.Linear(body.embedding_dim, embedding_dim)
        self.unit = UnitLength()

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [*self.body.segments, ("projection", self.projection), ("unit", self.unit)]

    def forward(self, x: Float[Tensor, "B C Y X"]) -> Float[Tensor, "B E"]:
        return self.unit(self.projection(self.body(x)))
