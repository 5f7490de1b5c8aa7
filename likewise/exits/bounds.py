"""What a sample of losses proves of their mean: p-values for "the risk is above alpha", and upper bounds.

Losses are in [0, 1], of examples that are drawn as those to come. None of it needs to know how they are distributed.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.checks import require
from likewise.metric.rates import log_binomial


def least_examples(*, risk: float, delta: float) -> int:
    """Below ln delta / ln(1 - risk) examples not even zero losses show that the risk is below `risk`.

    >>> least_examples(risk=0.05, delta=0.1), least_examples(risk=0.01, delta=0.1)
    (45, 230)
    """
    return math.ceil(math.log(delta) / math.log1p(-risk))


def hoeffding_bentkus(losses: Float[Tensor, "*many N"], *, risk: float) -> Float[Tensor, "*many"]:
    """A p-value for "the mean loss is above `risk`", for each row of losses.

    p = min(exp(-n h(min(R, risk), risk)), e P[Bin(n, risk) <= ceil(n R)]), R the mean of the row,
    h(a, b) = a ln(a / b) + (1 - a) ln((1 - a) / (1 - b)).

    >>> hoeffding_bentkus(torch.zeros(45, dtype=torch.float64), risk=0.05)  # 0.95^45
    tensor(0.0994, dtype=torch.float64)

    Paper: Learn then Test, arXiv 2110.01052, proposition 2.
    """
    count = losses.shape[-1]
    total = losses.double().sum(-1)
    mean = (total / count).clamp(max=risk)
    divergence = torch.xlogy(mean, mean / risk) + torch.xlogy(1 - mean, (1 - mean) / (1 - risk))
    counts = torch.arange(count + 1, dtype=torch.float64)
    at_most = torch.logcumsumexp(log_binomial(counts, total=count, chance=risk), 0).clamp(max=0)
    # A sum of halves or wholes is exact; of other losses, rounding up is the safe side.
    bentkus = 1 + at_most[total.ceil().long().clamp(max=count)]
    return torch.minimum(-count * divergence, bentkus).exp().clamp(max=1)


def betting(losses: Float[Tensor, "*many N"], *, risk: float, delta: float) -> Float[Tensor, "*many"]:
    """A p-value for "the mean loss is above `risk`", for each row: one over the most that betting against it ever won.

    K_i = prod_{j <= i} (1 - nu_j (L_j - risk)) is a game that is fair or worse if the mean is `risk` or more, so that
    it ever exceeds 1 / p with chance p at most. Stakes nu_j = min(1, sqrt(2 ln(1 / delta) / (n v_{j-1}))) follow the
    variance v seen so far, and so it is the better choice for losses that vary little. Order matters: it must be that
    of the draw.

    >>> betting(torch.zeros(2, dtype=torch.float64), risk=0.5, delta=0.01)  # two stakes of 1, each wins half
    tensor(0.4444, dtype=torch.float64)

    Paper: Estimating means of bounded random variables by betting, arXiv 2010.09686; arXiv 2101.02703, appendix.
    """
    stakes = _stakes(losses.double(), delta)
    return (-_most_won(losses.double(), stakes, risk)).exp().clamp(max=1)


def upper_bound(losses: Float[Tensor, "N"], *, delta: float) -> float:
    """The mean loss is below this with a chance of 1 - delta: the least risk against which betting won 1 / delta.

    >>> round(upper_bound(torch.zeros(100, dtype=torch.float64), delta=0.05), 3)
    0.031
    """
    require(len(losses) > 0, "upper_bound", "losses", "not be empty", 0)
    values = losses.double()
    stakes = _stakes(values, delta)
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        won = _most_won(values, stakes, middle).item() >= math.log(1 / delta)
        low, high = (low, middle) if won else (middle, high)
    return high


def _stakes(losses: Float[Tensor, "*many N"], delta: float) -> Float[Tensor, "*many N"]:
    """nu_i = min(1, sqrt(2 ln(1 / delta) / (n v_{i-1}))), where mu_i = (1/2 + sum_{j <= i} L_j) / (1 + i),
    v_i = (1/4 + sum_{j <= i} (L_j - mu_j)^2) / (1 + i) and v_0 = 1/4.
    """
    count = losses.shape[-1]
    turns = 1 + torch.arange(1, count + 1, dtype=torch.float64)
    means = (0.5 + losses.cumsum(-1)) / turns
    variances = (0.25 + (losses - means).square().cumsum(-1)) / turns
    before = torch.cat([torch.full_like(losses[..., :1], 0.25), variances[..., :-1]], dim=-1)
    return (2 * math.log(1 / delta) / (count * before)).sqrt().clamp(max=1)


def _most_won(
    losses: Float[Tensor, "*many N"], stakes: Float[Tensor, "*many N"], risk: float
) -> Float[Tensor, "*many"]:
    """log max_i K_i(risk)."""
    return torch.log1p(-stakes * (losses - risk)).cumsum(-1).amax(-1)
