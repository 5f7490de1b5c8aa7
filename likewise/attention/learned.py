"""Positive features whose weights are learned from the attention that they stand for."""

import hashlib
import math
from typing import Self

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.fitted import Fitted
from likewise.attention.frequencies import draw_frequencies
from likewise.attention.kernels import Exponential
from likewise.checks import require, require_count


class Learned(FeatureMap):
    """phi(x)_r = exp(w_r.x + b_r - c.x^2) with learned w, b and c, one set for queries and one for keys.

    It stands for exp(scale q.k), and is > 0. Before learning it is a draw of `Positive`: w ~ N(0, scale I),
    c = scale/2, b = -log(F)/2. kv_heads=G has weights for every key-value head. `likewise.huggingface.distill` learns
    them; any loss on the output of linear attention can.

    >>> phi = Learned(2, num_features=4096, scale=1.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> phi.kernel(q, k).item(), (phi.queries(q) @ phi.keys(k).mT).item()
    (1.6487..., 1.6...)

    Paper: The Hedgehog & the Porcupine, arXiv 2402.04347. Differs: exp(w.x + b - c.x^2) instead of softmax(w.x) over
    the features: the map begins as an unbiased estimate, and exact near pairs can share its denominator.
    """

    exact = False
    unbiased = False
    positive = True
    logarithmic = "features"

    def __init__(
        self,
        key_dim: int,
        *,
        num_features: int = 64,
        scale: float | None = None,
        kv_heads: int = 1,
        generator: Generator | None = None,
    ) -> None:
        kernel = Exponential(scale)
        super().__init__(kernel)
        for name, count in (("key_dim", key_dim), ("num_features", num_features), ("kv_heads", kv_heads)):
            require_count("Learned", name, count)
        right = generator is None or isinstance(generator, Generator)
        require(right, "Learned", "generator", "be a torch.Generator", repr(generator))
        self.key_dim, self.dim, self.kv_heads = key_dim, num_features, kv_heads
        factor = kernel.scale_for(key_dim)
        drawn = draw_frequencies(kv_heads, num_features, key_dim, sampler="orthogonal", generator=generator)
        weights = (drawn * math.sqrt(factor)).float()
        biases = torch.full((kv_heads, num_features), -math.log(num_features) / 2)
        curves = torch.full((kv_heads, key_dim), factor / 2)
        self.query_weights, self.key_weights = nn.Parameter(weights.clone()), nn.Parameter(weights)
        self.query_biases, self.key_biases = nn.Parameter(biases.clone()), nn.Parameter(biases)
        self.query_curves, self.key_curves = nn.Parameter(curves.clone()), nn.Parameter(curves)
        self._named: tuple[tuple[int, ...], str] | None = None

    @torch.no_grad()
    def start_from(self, fitted: Fitted) -> Self:
        """Take over the features of a map that was fitted to data, as what learning starts from."""
        same = (fitted.key_dim, fitted.dim, fitted.kv_heads) == (self.key_dim, self.dim, self.kv_heads)
        rule = f"have key_dim, num_features and kv_heads {(self.key_dim, self.dim, self.kv_heads)}"
        require(same, "Learned.start_from", "fitted", rule, (fitted.key_dim, fitted.dim, fitted.kv_heads))
        for side, terms, w in (
            ("query", fitted.query_terms, fitted.query_frequencies),
            ("key", fitted.key_terms, fitted.key_frequencies),
        ):
            # w.(x - m) + s.(x - m) - c.(x - m)^2 is linear and quadratic in x.
            mean, slope, curve = terms.double()
            weights = w.double() + (slope + 2 * curve * mean)[:, None]
            constant = (slope * mean + curve * mean.square()).sum(-1, keepdim=True)
            biases = fitted.offsets - (w.double() @ mean[:, :, None]).squeeze(-1) - constant
            for name, value in (("weights", weights), ("biases", biases), ("curves", curve)):
                getattr(self, f"{side}_{name}").copy_(value)
        return self

    def split_queries(self, x: Float[Tensor, "*B T K"]) -> Scaled:
        return self._split(x, self.query_weights, self.query_biases, self.query_curves)

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return self._split(x, self.key_weights, self.key_biases, self.key_curves)

    def _split(self, x: Tensor, weights: Tensor, biases: Tensor, curves: Tensor) -> Scaled:
        weights, biases, curves = (part.to(x.dtype) for part in (weights, biases, curves))
        if self.kv_heads == 1:
            linear, square = x @ weights[0].mT + biases[0], x.square() @ curves[0, :, None]
        else:
            grouped = x.unflatten(-3, (self.kv_heads, -1))
            linear = (grouped @ weights[:, None].mT + biases[:, None, None]).flatten(-4, -3)
            square = (grouped.square() @ curves[:, None, :, None]).flatten(-4, -3)
        return Scaled(None, linear - square)

    @property
    def projection_id(self) -> str:
        # A step asks each time; weights are read again only after they changed.
        parts = [parameter.detach() for parameter in self.parameters()]
        version = tuple(number for part in parts for number in (part.data_ptr(), part._version))
        if self._named is None or self._named[0] != version:
            data = b"".join(part.cpu().contiguous().float().numpy().tobytes() for part in parts)
            self._named = version, hashlib.sha256(data).hexdigest()[:16]
        return f"{super().projection_id}-{self._named[1]}"

    def extra_repr(self) -> str:
        return f"{self.key_dim}, features={self.dim}, kv_heads={self.kv_heads}, {self.kernel}"
