"""How likely two vectors are of one identity, by how vectors vary between identities and within one."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require, require_count


@dataclass(frozen=True, eq=False)
class TwoCovariance:
    """x = mean + y + e: y ~ N(0, between) is the identity's, e ~ N(0, within) the image's.

    >>> one = torch.ones(1, 1, dtype=torch.float64)
    >>> model = TwoCovariance(torch.zeros(1, dtype=torch.float64), between=one, within=one)
    >>> f"{model.ratios(one, one).item():.6f}"  # log N([1 1]; 0, [[2 1] [1 2]]) / N(1; 0, 2)^2 = 1/6 + ln(4/3) / 2
    '0.310508'
    """

    mean: Float[Tensor, "E"]
    between: Float[Tensor, "E E"]
    within: Float[Tensor, "E E"]

    def ratios(self, first: Float[Tensor, "n E"], second: Float[Tensor, "n E"]) -> Float[Tensor, "n"]:
        """log p(x, x' | one identity) - log p(x, x' | two), for each row; minus this is a distance.

        With s = x + x' and d = x - x', which are independent either way: s has the covariance 2 (2 between + within) if
        they are of one identity and d has 2 within; both have 2 (between + within) if not.
        """
        for name, rows in (("first", first), ("second", second)):
            _require_finite("TwoCovariance.ratios", name, rows)
        apart = self.between + self.within
        x, other = (rows.to(self.mean) - self.mean for rows in (first, second))
        same = _density(x + other, 2 * (apart + self.between)) + _density(x - other, 2 * self.within)
        return same - _density(x + other, 2 * apart) - _density(x - other, 2 * apart)


def two_covariance(
    embeddings: Float[Tensor, "N E"], labels: Int64[Tensor, "N"], *, rounds: int = 5, floor: float = 1e-6
) -> TwoCovariance:
    """The covariances under which labelled vectors are likely: expectation maximisation, in float64.

    rounds: each raises the likelihood; a few are enough for comparing. floor: the share of the mean variance that is
    added to every direction, so that fewer vectors than directions do no harm. Identities with one vector tell of the
    sum of both covariances only. Cost O(rounds (N E^2 + G E^3)) for G different numbers of vectors of an identity.

    Paper: Chen et al., Bayesian Face Revisited, ECCV 2012, section 3.2 ("joint Bayesian").
    """
    where = "two_covariance"
    require_count(where, "rounds", rounds, least=0)
    require(floor > 0, where, "floor", "be positive", floor)
    count = len(embeddings)
    require(len(labels) == count, where, "labels", f"have one entry for each of {count}", len(labels))
    _require_finite(where, "embeddings", embeddings)
    x = embeddings.detach().double()
    mean = x.mean(0) if count else x.sum(0)
    x = x - mean
    _, place, counts = labels.unique(return_inverse=True, return_counts=True)
    people, least = len(counts), floor * x.square().mean() * torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
    require(
        1 < people < len(x), where, "labels", "name two identities at least, one of them twice", labels.tolist()[:5]
    )
    sums = x.new_zeros(people, x.shape[1]).index_add_(0, place, x)
    centres = sums / counts[:, None]
    scatter = x.mT @ x
    between = centres.mT @ centres / people + least
    within = (scatter - sums.mT @ centres) / (count - people) + least
    for _ in range(rounds):
        seen, doubt, doubts = _identities(sums, counts, between, within)
        cross = sums.mT @ seen
        between = (seen.mT @ seen + doubt) / people + least
        within = (scatter - cross - cross.mT + (seen * counts[:, None]).mT @ seen + doubts) / count + least
    return TwoCovariance(mean, between, within)


def _identities(sums: Tensor, counts: Tensor, between: Tensor, within: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """What y of each identity is expected to be, and the covariances that remain, summed over identities and images.

    Given n vectors with the sum s, y has the covariance (between^-1 + n within^-1)^-1 = V and the mean V within^-1 s.
    """
    prior, precision = torch.linalg.inv(between), torch.linalg.inv(within)
    seen = torch.empty_like(sums)
    doubt, doubts = torch.zeros_like(between), torch.zeros_like(between)
    for count in counts.unique().tolist():
        mine = counts == count
        left = torch.linalg.inv(prior + count * precision)
        seen[mine] = sums[mine] @ precision @ left
        doubt += int(mine.sum()) * left
        doubts += int(mine.sum()) * count * left
    return seen, doubt, doubts


def _require_finite(where: str, name: str, rows: Tensor) -> None:
    bad = int((~rows.detach().isfinite().all(1)).sum())
    require(bad == 0, where, name, "be finite", f"{bad} rows that are not")


def _density(rows: Float[Tensor, "n E"], covariance: Float[Tensor, "E E"]) -> Float[Tensor, "n"]:
    """log N(x; 0, covariance) of each row, but for the constant that the same number of such terms takes away."""
    root = torch.linalg.cholesky(covariance)
    scaled = torch.linalg.solve_triangular(root, rows.mT, upper=False)
    return -0.5 * scaled.square().sum(0) - root.diagonal().log().sum()
