"""What every network is: a chain of named segments that ends in an embedding, or in what is made of one."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Network(nn.Module, ABC):
    """f = s_n o ... o s_1 for named segments s_i; `embedding_dim` is the width of the embedding that it makes."""

    embedding_dim: int

    @property
    @abstractmethod
    def segments(self) -> list[tuple[str, nn.Module]]:
        """The segments, first to last, by name."""

    def forward(self, x: Tensor) -> Tensor:
        """All segments, one after the other."""
        for _, segment in self.segments:
            x = segment(x)
        return x
