"""One comparison, and all comparisons of one feature map's forms with brute force."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from likewise.attention import FeatureMap, LinearState, kernel_attention, linear_attention
from likewise.attention.kernels import Induced

QKV = tuple[Tensor, Tensor, Tensor]
CHUNKS = (1, 7, 16, 1000)
CUTS = (13, 14, 15, 31, 32)  # where the stream is cut: a prompt, two single steps, a longer piece, a step, the rest


@dataclass(frozen=True)
class Check:
    """A statement, how it was checked, and how far the two sides are apart.

    The statement holds when the residual is at most the bound; one that says that two things *differ* (`apart`) holds
    when it is above. NaN holds neither way.
    """

    statement: str
    how: str
    residual: float
    bound: float
    unit: str = ""
    apart: bool = False

    @property
    def holds(self) -> bool:
        """The verdict.

        >>> Check("1 = 1 + e", "", residual=0.1, bound=0.01).holds
        False
        """
        return self.residual > self.bound if self.apart else self.residual <= self.bound


@dataclass(frozen=True)
class Agreement:
    """The forms of one feature map, each against brute force."""

    name: str
    exact: bool
    width: int
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether all forms agree."""
        return all(check.holds for check in self.checks)


def agree(name: str, features: FeatureMap, qkv: QKV, *, bound: float) -> Agreement:
    """Compare every form with brute force, which computes all T x S similarities and divides.

    Brute force takes the similarities from the map's kernel where the map is exact; a random map's from its own
    features, whose quality as an estimate is another question.

    >>> from likewise.attention import Elu
    >>> q, k, v = torch.randn(3, 1, 2, 37, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    >>> agree("Elu", Elu(), (q, k, v), bound=1e-9).holds
    True
    """
    kernel = features.kernel if features.exact else Induced(features.queries, features.keys)
    both, causal = (brute_force(features, qkv, causal=causal) for causal in (False, True))
    chunked = [linear_attention(*qkv, features=features, causal=True, chunk_size=size) for size in CHUNKS]
    residuals = {
        "plain": residual(kernel_attention(*qkv, kernel=kernel, causal=True), causal),
        "linear": residual(linear_attention(*qkv, features=features), both),
        "chunked": max(residual(out, causal) for out in chunked),
        "streaming": residual(stream(features, qkv), causal),
        "gradients": _gradient_residual(features, qkv),
    }
    checks = tuple(Check(f"{name}: {form} = brute force", form, value, bound) for form, value in residuals.items())
    return Agreement(name, features.exact, features.dim or qkv[1].shape[-1], checks)


def brute_force(features: FeatureMap, qkv: QKV, *, causal: bool) -> Tensor:
    """O_i = sum_j sim(q_i, k_j) v_j / sum_j sim(q_i, k_j), all similarities written down; 0 where they are all 0."""
    q, k, v = qkv
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], dim=1) for x in (k, v))
    similarities = features.kernel(q, k) if features.exact else features.queries(q) @ features.keys(k).mT
    weights = similarities.tril() if causal else similarities
    total = weights.sum(-1, keepdim=True)
    nothing = total == 0
    return (torch.einsum("bhts,bhsv->bhtv", weights, v) / total.masked_fill(nothing, 1)).masked_fill(nothing, 0)


def stream(features: FeatureMap, qkv: QKV) -> Tensor:
    """The causal outputs from a state that meets the sequence in pieces."""
    _, _, v = qkv
    state = LinearState.empty(features, batch=v.shape[0], kv_heads=v.shape[1], value_dim=v.shape[3])
    outputs = []
    for start, stop in zip((0, *CUTS), (*CUTS, v.shape[2]), strict=True):
        out, state = state.prefill(*(x[:, :, start:stop] for x in qkv))
        outputs.append(out)
    return torch.cat(outputs, dim=2)


def residual(actual: Tensor, expected: Tensor) -> float:
    """max |actual - expected| / max |expected|, infinite when anything is NaN.

    >>> residual(torch.tensor([1.0, 2.5]), torch.tensor([1.0, 2.0])), residual(torch.tensor(torch.nan), torch.ones(()))
    (0.25, inf)
    """
    difference = (actual.detach().double() - expected.detach().double()).abs().max().item()
    size = expected.detach().double().abs().max().item()
    ratio = difference / size if size else difference
    return math.inf if math.isnan(ratio) else ratio  # Python's max() would lose a NaN


def changed(actual: Tensor, expected: Tensor) -> float:
    """0 when every bit is the same, else the largest difference, infinite where it cannot be told.

    >>> changed(torch.tensor([1.0]), torch.tensor([1.0])), changed(torch.tensor([torch.nan]), torch.tensor([1.0]))
    (0.0, inf)
    """
    if torch.equal(actual, expected):
        return 0.0
    difference = (actual.detach() - expected.detach()).abs().max().item()
    return math.inf if math.isnan(difference) else difference


def _gradient_residual(features: FeatureMap, qkv: QKV) -> float:
    """How far the gradients of the chunked form are from those of brute force, for q, k and v."""

    def gradients(attend: Callable[[QKV], Tensor]) -> tuple[Tensor, ...]:
        q, k, v = (x.detach().clone().requires_grad_() for x in qkv)
        return torch.autograd.grad(attend((q, k, v)).square().sum(), (q, k, v))

    fast = gradients(lambda leaves: linear_attention(*leaves, features=features, causal=True, chunk_size=CHUNKS[1]))
    plain = gradients(lambda leaves: brute_force(features, leaves, causal=True))
    return max(residual(ours, theirs) for ours, theirs in zip(fast, plain, strict=True))
