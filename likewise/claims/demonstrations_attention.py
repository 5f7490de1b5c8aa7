"""What was said about attention as code, run: each demonstration returns the number a claim compares, or raises.

Imported only where programs run, for it needs torch. Nothing is random but what a fixed generator draws.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from likewise.attention import KeyValueCache, MultiHeadAttention, Polynomial, argmax_attention

WIDTH, HEADS, BATCH, TOKENS = 16, 4, 2, 5
PER_HEAD = WIDTH // HEADS


def textbook() -> tuple[Tensor, Tensor, Tensor]:
    """The query, the four keys and the four values of the exercise."""
    q = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64).view(1, 1, 1, 3)
    k = torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    v = torch.tensor([[2.0, 0.0, 1.0], [1.0, 4.0, 3.0], [0.0, -1.0, 4.0], [1.0, 0.0, -1.0]], dtype=torch.float64)
    return q, k.view(1, 1, 4, 3), v.view(1, 1, 4, 3)


def argmax_output() -> list[float]:
    """The value of the key with the largest score.

    >>> argmax_output()
    [1.0, 4.0, 3.0]
    """
    return argmax_attention(*textbook()).flatten().tolist()


def argmax_gradient_of_queries_and_keys() -> float:
    """The largest gradient of any output in a query or a key.

    >>> argmax_gradient_of_queries_and_keys()
    0.0
    """
    q, k, _ = _argmax_gradients()
    return max(q.abs().max().item(), k.abs().max().item())


def argmax_gradient_of_values() -> float:
    """The largest gradient of any output in a value: outputs are values.

    >>> argmax_gradient_of_values()
    1.0
    """
    return _argmax_gradients()[2].abs().max().item()


def _argmax_gradients() -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (part.requires_grad_() for part in textbook())
    argmax_attention(q, k, v).sum().backward()
    assert q.grad is not None and k.grad is not None and v.grad is not None
    return q.grad, k.grad, v.grad


def argmax_quotients_at_a_tie() -> float:
    """How the difference quotient grows when the step shrinks a thousandfold; 1 where there is a derivative.

    >>> round(argmax_quotients_at_a_tie())
    1000
    """
    return _quotient_at_a_tie(1e-6) / _quotient_at_a_tie(1e-3)


def _quotient_at_a_tie(step: float) -> float:
    """The scores of the two keys are 0 and -q, so q = 0 is a tie, which the first key wins, and q < 0 is not."""
    return (_one_dimension(-step) - _one_dimension(0.0)) / -step


def argmax_above_its_chord() -> float:
    """How far the output in the middle of two queries lies above the mean of their outputs; a convex function: never.

    >>> argmax_above_its_chord()
    0.5
    """
    return _one_dimension(0.5) - (_one_dimension(-1.0) + _one_dimension(2.0)) / 2


def _one_dimension(query: float) -> float:
    """Argmax attention of width 1: value 1 for queries from 0 on, value 0 below."""
    q = torch.tensor(query, dtype=torch.float64).view(1, 1, 1, 1)
    k = torch.tensor([0.0, -1.0], dtype=torch.float64).view(1, 1, 2, 1)
    v = torch.tensor([1.0, 0.0], dtype=torch.float64).view(1, 1, 2, 1)
    return argmax_attention(q, k, v).item()


class _MultiHead(nn.Module):
    """The module of the exercise with the widths that were filled in."""

    def __init__(self, keys_out: int, values_in: int, values_out: int, output_in: int, *, by_own_width: bool) -> None:
        super().__init__()
        self.W_q = nn.Linear(WIDTH, WIDTH)
        self.W_k = nn.Linear(WIDTH, keys_out)
        self.W_v = nn.Linear(values_in, values_out)
        self.W_o = nn.Linear(output_in, WIDTH)
        self.per_value_head = values_out // HEADS if by_own_width else PER_HEAD

    def forward(self, x: Tensor) -> Tensor:
        """Project, split, attend, join, project."""
        q, k = split_heads(self.W_q(x), PER_HEAD), split_heads(self.W_k(x), PER_HEAD)
        v = split_heads(self.W_v(x), self.per_value_head)
        joined = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.project(joined)

    def project(self, joined: Tensor) -> Tensor:
        """The heads side by side to the width of the model."""
        return self.W_o(joined)


class _BareName(_MultiHead):
    """The same, with the last blank filled in by W_o instead of self.W_o."""

    def project(self, joined: Tensor) -> Tensor:
        """A name that is not there."""
        return W_o(joined)  # ty: ignore[unresolved-reference]


def split_heads(x: Tensor, width: int) -> Tensor:
    """(b, t, h * width) to (b, h, t, width)."""
    return x.view(*x.shape[:2], HEADS, width).transpose(1, 2)


def multi_head(keys_out: int, values_in: int, values_out: int, output_in: int) -> list[int]:
    """The shape of the output where heads are split by the width d_model / h, whatever the layers give.

    >>> multi_head(16, 16, 16, 16)
    [2, 5, 16]
    """
    return list(_MultiHead(keys_out, values_in, values_out, output_in, by_own_width=False)(_tokens()).shape)


def multi_head_wide_values(output_in: int) -> list[int]:
    """The same with values of twice the width, split by their own width.

    >>> multi_head_wide_values(32)
    [2, 5, 16]
    """
    return list(_MultiHead(WIDTH, WIDTH, 2 * WIDTH, output_in, by_own_width=True)(_tokens()).shape)


def multi_head_by_bare_name() -> list[int]:
    """The same with the widths right and the last blank filled in by W_o: NameError."""
    return list(_BareName(WIDTH, WIDTH, WIDTH, WIDTH, by_own_width=False)(_tokens()).shape)


def _tokens() -> Tensor:
    return torch.ones(BATCH, TOKENS, WIDTH)


def split_heads_error() -> float:
    """The largest difference between split heads and the columns that belong to each.

    >>> split_heads_error()
    0.0
    """
    x = _drawn(BATCH, TOKENS, WIDTH)
    columns = [x[..., PER_HEAD * head : PER_HEAD * (head + 1)] for head in range(HEADS)]
    return (split_heads(x, PER_HEAD) - torch.stack(columns, dim=1)).abs().max().item()


def unscaled_attention_error() -> float:
    """The largest difference between softmax(Q K') V and PyTorch's scaled_dot_product_attention.

    >>> unscaled_attention_error() > 0.1
    True
    """
    q, k, v = (_drawn(BATCH, HEADS, TOKENS, PER_HEAD, seed=seed) for seed in range(3))
    plain = (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v
    return (plain - functional.scaled_dot_product_attention(q, k, v)).abs().max().item()


def cache_ratio(heads: int) -> float:
    """Numbers kept for decoding with one key head for each of `heads` query heads, over those with a single one.

    >>> cache_ratio(4)
    4.0
    """
    return _cached(heads, heads) / _cached(heads, 1)


def _cached(heads: int, kv_heads: int) -> int:
    module = MultiHeadAttention(4 * heads, num_heads=heads, num_kv_heads=kv_heads)
    cache = module.empty_cache(batch=BATCH)
    for _ in range(TOKENS):
        _, cache = module.decode(torch.ones(BATCH, 1, 4 * heads), cache)
    assert isinstance(cache, KeyValueCache)
    return cache.keys.numel() + cache.values.numel()


def quadratic_kernel() -> list[float]:
    """Our kernel at q = (1, 1) and the keys (1, 1), (1, -1), (-1, 0), whose products with q are 2, 0 and -1.

    >>> quadratic_kernel()
    [9.0, 1.0, 0.0]
    """
    q, k = torch.ones(1, 1, 1, 2), torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 0.0]]).view(1, 1, 3, 2)
    return Polynomial(degree=2, constant=1.0)(q, k).flatten().tolist()


def _drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


DEMONSTRATIONS: dict[str, Callable[..., "float | Sequence[float]"]] = {
    "demo.argmax_output": argmax_output,
    "demo.argmax_gradient_of_queries_and_keys": argmax_gradient_of_queries_and_keys,
    "demo.argmax_gradient_of_values": argmax_gradient_of_values,
    "demo.argmax_quotients_at_a_tie": argmax_quotients_at_a_tie,
    "demo.argmax_above_its_chord": argmax_above_its_chord,
    "demo.multi_head": multi_head,
    "demo.multi_head_wide_values": multi_head_wide_values,
    "demo.multi_head_by_bare_name": multi_head_by_bare_name,
    "demo.split_heads_error": split_heads_error,
    "demo.unscaled_attention_error": unscaled_attention_error,
    "demo.cache_ratio": cache_ratio,
    "demo.quadratic_kernel": quadratic_kernel,
}
