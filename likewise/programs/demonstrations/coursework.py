"""Programs of ours that `run(...)` may name without permission: small real torch code for statements about code.

A demonstration returns numbers, or raises what torch raises. Those of `mha` take the tokens x[b,t,d] of the claim, or
bring their own; an `..._error` is the largest difference from the plain form, in double precision.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

QUERY = [1, 1, 2]
KEYS = [[1, 2, 0], [0, 3, 4], [5, 0, 0], [0, 0, 1]]
VALUES = [[2, 0, 1], [1, 4, 3], [0, -1, 4], [1, 0, -1]]
HEADS = 4


def _torch() -> Any:
    import torch

    return torch


def _random(*shape: int, seed: int) -> Any:
    """Normal numbers in double precision, the same in every run."""
    torch = _torch()
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@contextmanager
def _own_seed() -> Generator[None]:
    """Layers are initialised the same in every run, and nobody else's random numbers move."""
    torch = _torch()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def _apart(a: Any, b: Any) -> float:
    return (a - b).abs().max().item()


def _argmax_attention(q: Any, k: Any, v: Any) -> Any:
    """The value whose key has the largest score."""
    return v[(k @ q).argmax()]


def _exercise() -> list[Any]:
    """A query, four keys and their values, as the exercise prints them."""
    torch = _torch()
    return [torch.tensor(rows, dtype=torch.float64, requires_grad=True) for rows in (QUERY, KEYS, VALUES)]


def argmax_scores() -> Any:
    """q·k for each key: 3, 11, 5, 2."""
    q, k, _ = _exercise()
    return k @ q


def argmax_output() -> Any:
    """The second value: 1, 4, 3."""
    return _argmax_attention(*_exercise())


def _argmax_gradient(place: int) -> float:
    """The largest entry of the gradient in q, k or v; where autograd finds no path it is 0."""
    inputs = _exercise()
    _argmax_attention(*inputs).sum().backward()
    gradient = inputs[place].grad
    return 0.0 if gradient is None else gradient.abs().max().item()


def argmax_slope_at_a_tie() -> float:
    """Difference quotient across a tie of two keys, over a step of 1e-9; the output jumps by 1."""
    torch = _torch()
    k, v, step = torch.eye(2, dtype=torch.float64), torch.tensor([[1.0], [0.0]], dtype=torch.float64), 1e-9
    sides = [torch.tensor([0.5 + side, 0.5], dtype=torch.float64) for side in (-step, 0.0)]
    below, above = (_argmax_attention(q, k, v) for q in sides)
    return _apart(above, below) / step


def _multi_head(keys: float, values: float, *, split_by_head: bool = False) -> Callable[..., Any]:
    """Self-attention with W_k and W_v to so many times d_model; heads are d_k wide, or what W_v gives each of them."""

    def forward(x: Any = None) -> Any:
        torch = _torch()
        x = _random(2, 5, 16, seed=0).float() if x is None else x
        batch, length, d_model = x.shape
        d_k = d_model // HEADS
        with _own_seed():
            W_q, W_k, W_v = (torch.nn.Linear(d_model, int(d_model * width)) for width in (1, keys, values))
            W_o = torch.nn.Linear(int(d_model * values), d_model)

        def split_heads(y: Any, width: int = d_k) -> Any:
            return y.view(batch, length, HEADS, width).transpose(1, 2)

        scores = split_heads(W_q(x)) @ split_heads(W_k(x)).transpose(-2, -1) / d_k**0.5
        mixed = scores.softmax(dim=-1) @ split_heads(W_v(x), -1 if split_by_head else d_k)
        return W_o(mixed.transpose(1, 2).reshape(batch, length, -1))

    return forward


def _output_layer(bare: bool) -> Any:
    """A module whose forward calls its output layer by its bare name, or as its own."""
    torch = _torch()

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.W_o = torch.nn.Linear(16, 16)

        def forward(self, x: Any) -> Any:
            return W_o(x) if bare else self.W_o(x)  # ty: ignore[unresolved-reference]

    with _own_seed():
        return Block()(torch.zeros(2, 16))


def split_heads_error() -> float:
    """view(b, t, h, d_k).transpose(1, 2): head i holds the columns from i·d_k on."""
    torch = _torch()
    x = _random(2, 5, 12, seed=0)
    heads = x.view(2, 5, 3, 4).transpose(1, 2)
    return _apart(heads, torch.stack([x[..., 4 * head : 4 * head + 4] for head in range(3)], dim=1))


def _attention_error(scale: float) -> float:
    """softmax(scale·QKᵀ)V against torch's own scaled attention, keys 4 wide."""
    q, k, v = (_random(1, 3, 7, 4, seed=seed) for seed in range(3))
    mine = (scale * q @ k.transpose(-2, -1)).softmax(dim=-1) @ v
    return _apart(mine, _torch().nn.functional.scaled_dot_product_attention(q, k, v))


def softmax_row_sum_error() -> float:
    """Softmax over the last dim: each query's weights sum to 1."""
    weights = _random(2, 3, 7, 5, seed=0).softmax(dim=-1)
    return _apart(weights.sum(dim=-1), _torch().ones((), dtype=weights.dtype))


def softmax_online_error() -> float:
    """Softmax attention one key at a time, with a running maximum and never a row of weights."""
    torch = _torch()
    q, k, v = _random(7, 4, seed=0), _random(11, 4, seed=1), _random(11, 5, seed=2)
    top = torch.full((7, 1), -torch.inf, dtype=q.dtype)
    total, mixed = torch.zeros_like(top), torch.zeros(7, 5, dtype=q.dtype)
    for key, value in zip(k, v, strict=True):
        score = (q @ key)[:, None]
        higher = torch.maximum(top, score)
        shrink, weight = (top - higher).exp(), (score - higher).exp()
        top, total, mixed = higher, total * shrink + weight, mixed * shrink + weight * value
    return _apart(mixed / total, (q @ k.T).softmax(dim=-1) @ v)


def _features() -> tuple[Any, Any, Any]:
    """Positive features of 6 queries and 6 keys, rows 3 wide; values 5 wide."""
    return _random(6, 3, seed=0).exp(), _random(6, 3, seed=1).exp(), _random(6, 5, seed=2)


def _causal(fq: Any, fk: Any, v: Any) -> Any:
    """The masked quadratic form."""
    weights = (fq @ fk.T).tril()
    return weights @ v / weights.sum(dim=-1, keepdim=True)


def causal_prefix_error() -> float:
    """V'_i = φ(Q_i)S_i / φ(Q_i)Z_i with S and Z grown by one term per step."""
    torch = _torch()
    fq, fk, v = _features()
    state, norm, rows = torch.zeros(3, 5, dtype=v.dtype), torch.zeros(3, 1, dtype=v.dtype), []
    for q, k, value in zip(fq[:, None], fk[:, None], v[:, None], strict=True):
        state, norm = state + k.T @ value, norm + k.T
        rows.append(q @ state / (q @ norm))
    return _apart(torch.cat(rows), _causal(fq, fk, v))


def causal_cumsum_error() -> float:
    """All prefix sums in one batched call."""
    fq, fk, v = _features()
    states = (fk[:, :, None] * v[:, None, :]).cumsum(dim=0)
    rows = (fq[:, None, :] @ states)[:, 0] / (fq * fk.cumsum(dim=0)).sum(dim=-1, keepdim=True)
    return _apart(rows, _causal(fq, fk, v))


def causal_full_sums_error() -> float:
    """The sums run to N instead of to i."""
    fq, fk, v = _features()
    return _apart(fq @ (fk.T @ v) / (fq @ fk.sum(dim=0))[:, None], _causal(fq, fk, v))


def _kernel_form_error(numerator: Callable[..., Any], columns: bool) -> float:
    """A linear form of kernel attention, one query at a time, against ΣφφV/Σφφ; features lie in rows or columns."""
    torch = _torch()
    fq, fk, v = _features()
    lay = (lambda row: row[:, None]) if columns else (lambda row: row[None, :])
    weights = fq @ fk.T
    rows = [sum(numerator(lay(q), lay(k), value) for k, value in zip(fk, v, strict=True)) for q in fq]
    return _apart(torch.cat(rows) / weights.sum(dim=-1, keepdim=True), weights @ v / weights.sum(dim=-1, keepdim=True))


def hooks_output_change() -> float:
    """A forward hook that reads activations and returns None."""
    torch = _torch()
    with _own_seed():
        network = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    x, seen = _random(5, 4, seed=0).float(), []
    before = network(x)
    for layer in network:
        layer.register_forward_hook(lambda _layer, _inputs, output: seen.append(output.detach()))
    change = _apart(network(x), before)
    assert len(seen) == len(network)
    return change


def gram_exponential_smallest() -> float:
    """The smallest eigenvalue of exp(x_i·x_j) for eight points: a kernel has none below 0."""
    x = _random(8, 3, seed=0)
    return _torch().linalg.eigvalsh((x @ x.T).exp()).min().item()


DEMONSTRATIONS: dict[str, Callable[..., Any]] = {
    "argmax.scores": argmax_scores,
    "argmax.output": argmax_output,
    "argmax.gradient_q": lambda: _argmax_gradient(0),
    "argmax.gradient_k": lambda: _argmax_gradient(1),
    "argmax.gradient_v": lambda: _argmax_gradient(2),
    "argmax.slope_at_a_tie": argmax_slope_at_a_tie,
    "mha.full_width": _multi_head(1, 1),
    "mha.key_width_dk": _multi_head(1 / HEADS, 1),
    "mha.value_width_dk": _multi_head(1, 1 / HEADS),
    "mha.wide_values_fixed_split": _multi_head(1, 2),
    "mha.wide_values_free_split": _multi_head(1, 2, split_by_head=True),
    "mha.bare_output_layer": lambda: _output_layer(bare=True),
    "mha.own_output_layer": lambda: _output_layer(bare=False),
    "mha.split_heads_error": split_heads_error,
    "attention.scaled_error": lambda: _attention_error(0.5),
    "attention.unscaled_error": lambda: _attention_error(1.0),
    "softmax.row_sum_error": softmax_row_sum_error,
    "softmax.online_error": softmax_online_error,
    "causal.prefix_error": causal_prefix_error,
    "causal.cumsum_error": causal_cumsum_error,
    "causal.full_sums_error": causal_full_sums_error,
    "kernel.column_form_error": lambda: _kernel_form_error(lambda q, k, v: q.T @ (k @ v[:, None].T), columns=True),
    "kernel.mixed_form_error": lambda: _kernel_form_error(lambda q, k, v: q.T @ (k @ v[None, :]), columns=True),
    "kernel.row_form_error": lambda: _kernel_form_error(lambda q, k, v: q @ k.T @ v[None, :], columns=False),
    "gram.exponential_smallest": gram_exponential_smallest,
    "hooks.output_change": hooks_output_change,
}
