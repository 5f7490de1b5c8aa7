"""Multi-head, grouped and multi-query attention around any of the room's forms, and decoding one position at a time."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from likewise.attention.cache import KeyValueCache
from likewise.attention.exact import argmax_attention, kernel_attention, softmax_attention
from likewise.attention.features import FeatureMap
from likewise.attention.kernels import SimilarityKernel
from likewise.attention.linear import linear_attention
from likewise.attention.masks import Structure, check_key_mask
from likewise.attention.state import LinearState
from likewise.checks import require, require_count, require_number

Cache = KeyValueCache | LinearState


class Attend(nn.Module, ABC):
    """One form of attention as a part: q, k, v to values, its own buffers, and what decoding remembers."""

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        """The outputs (B, H, T, V)."""

    def forward(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B G S K"],
        v: Float[Tensor, "B G S V"],
        *,
        causal: bool = False,
        mask: Bool[Tensor, "..."] | None = None,
        sequence_ids: Int[Tensor, "B S"] | None = None,
        prefix_lengths: Int[Tensor, " B"] | None = None,
        block_size: int | None = None,
    ) -> Float[Tensor, "B H T V"]:
        """The outputs, with the arguments of the room's functions."""
        return self.attend(q, k, v, Structure(causal, mask, sequence_ids, prefix_lengths, block_size))

    def empty_cache(self, *, batch: int, kv_heads: int, value_dim: int, lag: int = 0) -> Cache:
        """What decoding starts from: for the exact forms, no keys and values yet."""
        where = f"{type(self).__name__}.empty_cache"
        for name, value, least in (
            ("batch", batch, 0),
            ("kv_heads", kv_heads, 1),
            ("value_dim", value_dim, 0),
            ("lag", lag, 0),
        ):
            require_count(where, name, value, least=least)
        return KeyValueCache.empty()

    def decode(self, q: Tensor, k: Tensor, v: Tensor, cache: Cache, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        """The outputs of the next positions, which see all before them, and the cache after them."""
        name = type(self).__name__
        require(isinstance(cache, KeyValueCache), name, "cache", "be a KeyValueCache", type(cache).__name__)
        assert isinstance(cache, KeyValueCache)
        cache = cache.append(k, v, mask)
        return self.attend(q, cache.keys, cache.values, Structure(causal=True, mask=cache.mask)), cache


class Softmax(Attend):
    """`softmax_attention` as a part; weights are dropped in training only."""

    def __init__(self, *, scale: float | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        if scale is not None:
            require_number("Softmax", "scale", scale)
        require(0 <= dropout < 1, "Softmax", "dropout", "be at least 0 and below 1", dropout)
        self.scale, self.dropout = scale, dropout

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        return softmax_attention(q, k, v, scale=self.scale, dropout=dropout, **structure._asdict())


class Argmax(Attend):
    """`argmax_attention` as a part: only the values, and what comes after them, can be learned through it."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        return argmax_attention(q, k, v, **structure._asdict())


class Kernel(Attend):
    """`kernel_attention` as a part."""

    def __init__(self, kernel: SimilarityKernel) -> None:
        super().__init__()
        require(isinstance(kernel, SimilarityKernel), "Kernel", "kernel", "be a kernel", repr(kernel))
        self.kernel = kernel

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        return kernel_attention(q, k, v, kernel=self.kernel, **structure._asdict())


class Linear(Attend):
    """`linear_attention` as a part: decoding keeps one `LinearState` per key-value head."""

    def __init__(self, features: FeatureMap, *, exact_within: int | None = None, dropout: float = 0.0) -> None:
        super().__init__()
        require(isinstance(features, FeatureMap), "Linear", "features", "be a feature map", repr(features))
        if exact_within is not None:
            require_count("Linear", "exact_within", exact_within)
        hint = "There are no weights to drop; drop outputs instead."
        require(dropout == 0, "Linear", "dropout", "be 0", dropout, hint)
        self.features, self.exact_within = features, exact_within

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        return linear_attention(q, k, v, features=self.features, exact_within=self.exact_within, **structure._asdict())

    def empty_cache(self, *, batch: int, kv_heads: int, value_dim: int, lag: int = 0) -> LinearState:
        return LinearState.empty(
            self.features,
            batch=batch,
            kv_heads=kv_heads,
            value_dim=value_dim,
            lag=lag,
            exact_within=self.exact_within,
        )

    def decode(self, q: Tensor, k: Tensor, v: Tensor, cache: Cache, mask: Tensor | None = None) -> tuple[Tensor, Cache]:
        require(isinstance(cache, LinearState), "Linear", "cache", "be a LinearState", type(cache).__name__)
        assert isinstance(cache, LinearState)
        mine = self.features.projection_id
        require(cache.projection_id == mine, "Linear", "cache", f"be of projection {mine}", cache.projection_id)
        return cache.prefill(q, k, v, mask=mask)


class MultiHeadAttention(nn.Module):
    """H query heads over G key-value heads: multi-head (G = H), grouped, or multi-query (G = 1) attention.

    Keys are dim / H wide per head. `value_dim` is the width of all heads' values joined, dim unless given; each head
    has value_dim / H of it, and w_o leads back to dim. `attend` is the form of attention: Softmax(), Argmax(),
    Kernel(kernel) or Linear(features).

    >>> mha = MultiHeadAttention(16, num_heads=4, value_dim=32)  # keys 16/4 = 4 wide, values 32/4 = 8
    >>> [tuple(w.weight.shape) for w in (mha.w_q, mha.w_k, mha.w_v, mha.w_o)]  # (out, in)
    [(16, 16), (16, 16), (32, 16), (16, 32)]
    >>> mqa = MultiHeadAttention(16, num_heads=4, num_kv_heads=1, value_dim=32)
    >>> [tuple(w.weight.shape) for w in (mqa.w_q, mqa.w_k, mqa.w_v, mqa.w_o)]
    [(16, 16), (4, 16), (8, 16), (16, 32)]
    >>> mqa(torch.zeros(2, 5, 16), causal=True).shape
    torch.Size([2, 5, 16])

    Paper: Attention Is All You Need, arXiv 1706.03762; Fast Transformer Decoding, arXiv 1911.02150.
    """

    def __init__(
        self,
        dim: int,
        *,
        num_heads: int,
        num_kv_heads: int | None = None,
        value_dim: int | None = None,
        attend: Attend | None = None,
        bias: bool = False,
    ) -> None:
        super().__init__()
        where = "MultiHeadAttention"
        kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        joined = dim if value_dim is None else value_dim
        for name, count in (("dim", dim), ("num_heads", num_heads), ("num_kv_heads", kv_heads), ("value_dim", joined)):
            require_count(where, name, count)
        require(dim % num_heads == 0, where, "dim", f"be a multiple of num_heads = {num_heads}", dim)
        require(joined % num_heads == 0, where, "value_dim", f"be a multiple of num_heads = {num_heads}", joined)
        require(num_heads % kv_heads == 0, where, "num_kv_heads", f"divide num_heads = {num_heads}", kv_heads)
        require(attend is None or isinstance(attend, Attend), where, "attend", "be a form of attention", repr(attend))
        self.dim, self.num_heads, self.num_kv_heads = dim, num_heads, kv_heads
        self.head_key_dim, self.head_value_dim = dim // num_heads, joined // num_heads
        self.w_q = nn.Linear(dim, dim, bias=bias)
        self.w_k = nn.Linear(dim, kv_heads * self.head_key_dim, bias=bias)
        self.w_v = nn.Linear(dim, kv_heads * self.head_value_dim, bias=bias)
        self.w_o = nn.Linear(joined, dim, bias=bias)
        self.attend = Softmax() if attend is None else attend

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        context: Float[Tensor, "B S D"] | None = None,
        *,
        causal: bool = False,
        mask: Bool[Tensor, "..."] | None = None,
        sequence_ids: Int[Tensor, "B S"] | None = None,
        prefix_lengths: Int[Tensor, " B"] | None = None,
        block_size: int | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Attention of x to itself, or to `context`; mask (B, S) says which positions of that are no padding.

        Padding is read as 0, whatever stands there, also where its own outputs are concerned.
        """
        self._check_input("x", x)
        source = x if context is None else context
        self._check_input("context", source)
        if mask is not None and mask.dim() == 2:
            check_key_mask("MultiHeadAttention", mask, (source.shape[0], source.shape[1]), x.device)
            # NaN in padding must not reach the gradients of the projections.
            source = source.masked_fill(~mask[:, :, None], 0)
        q, k, v = self._split(source if context is None else x, source)
        return self._join(
            self.attend.attend(q, k, v, Structure(causal, mask, sequence_ids, prefix_lengths, block_size))
        )

    def empty_cache(self, *, batch: int = 1, lag: int = 0) -> Cache:
        """What `decode` starts from; lag is how many positions a linear cache can take back."""
        return self.attend.empty_cache(batch=batch, kv_heads=self.num_kv_heads, value_dim=self.head_value_dim, lag=lag)

    def decode(
        self, x: Float[Tensor, "B T D"], cache: Cache, *, mask: Bool[Tensor, "B T"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], Cache]:
        """Causal self-attention of the next positions, usually one, and the cache after them.

        Decoding piece by piece gives what `forward(x, causal=True)` gives at once.
        """
        self._check_input("x", x)
        check_key_mask("MultiHeadAttention.decode", mask, (x.shape[0], x.shape[1]), x.device)
        x = x if mask is None else x.masked_fill(~mask[:, :, None], 0)
        q, k, v = self._split(x, x)
        out, cache = self.attend.decode(q, k, v, cache, mask)
        return self._join(out), cache

    def _check_input(self, name: str, x: Tensor) -> None:
        fits = x.dim() == 3 and x.shape[2] == self.dim
        require(fits, "MultiHeadAttention", name, f"have shape (batch, positions, {self.dim})", tuple(x.shape))
        weight = self.w_q.weight
        same = (x.dtype, x.device) == (weight.dtype, weight.device) or torch.is_autocast_enabled(x.device.type)
        rule = f"have the dtype and device of the weights, {weight.dtype} on {weight.device}"
        require(same, "MultiHeadAttention", name, rule, f"{x.dtype} on {x.device}")

    def _split(self, x: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Projections by head, (B, heads, positions, width); the width of values is their own."""
        q = self.w_q(x).unflatten(-1, (self.num_heads, self.head_key_dim))
        k = self.w_k(source).unflatten(-1, (self.num_kv_heads, self.head_key_dim))
        v = self.w_v(source).unflatten(-1, (self.num_kv_heads, self.head_value_dim))
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

    def _join(self, out: Float[Tensor, "B H T V"]) -> Float[Tensor, "B T D"]:
        """Heads side by side, and back to the model's width."""
        return self.w_o(out.transpose(1, 2).flatten(2))
