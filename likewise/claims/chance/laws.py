"""Random variables as arrays: draws of a law, and the range it cannot leave."""

import numpy as np

from likewise.claims.chance.draws import Array, Range, Scope, known, room
from likewise.claims.language.claim import Law, Normal, Rademacher, Uniform, Variable
from likewise.claims.language.tree import Call, Node
from likewise.claims.verdict import Undecided

ROUNDING = 1e-9  # of an eigenvalue, relative to the largest


def draw(variable: Variable, scope: Scope, count: int, generator: np.random.Generator) -> Array:
    """So many independent draws, one per row."""
    law = _law(variable)
    if isinstance(law, Normal):
        mean, root = _normal(law, scope, variable.name)
        sizes = root.shape[:1] or mean.shape
        room(count, *sizes)
        noise = generator.standard_normal((count, *sizes))
        return mean + (noise @ root.T if root.ndim == 2 else noise * root)
    if isinstance(law, Uniform):
        low, high = _ends(law, scope, variable.name)
        room(count, *low.shape)
        return low + (high - low) * generator.random((count, *low.shape))
    (size,) = _finite(Call("zeros", (law.dim,)), scope, variable.name).shape
    room(count, size)
    return 2.0 * generator.integers(0, 2, (count, size)) - 1


def support(variable: Variable, scope: Scope) -> Range:
    """The smallest range that holds every draw."""
    law = _law(variable)
    if isinstance(law, Uniform):
        low, high = _ends(law, scope, variable.name)
        return Range(low[None], high[None])
    if isinstance(law, Rademacher):
        ones = np.ones_like(_finite(Call("zeros", (law.dim,)), scope, variable.name))[None]
        return Range(-ones, ones)
    mean, root = _normal(law, scope, variable.name)
    infinite = np.full((1, *(root.shape[:1] or mean.shape)), np.inf)
    return Range(-infinite, infinite)


def _law(variable: Variable) -> Law:
    assert isinstance(variable.kind, Normal | Uniform | Rademacher)
    return variable.kind


def _finite(node: Node, scope: Scope, name: str) -> Array:
    """A parameter of a law: a value without an axis of draws, for variables are independent."""
    value = known(scope.evaluate(node))
    if not np.isfinite(value).all():
        raise Undecided(f"{node}, in the law of {name}, is not finite")
    return value


def _ends(law: Uniform, scope: Scope, name: str) -> tuple[Array, Array]:
    low, high = np.broadcast_arrays(_finite(law.lowest, scope, name), _finite(law.highest, scope, name))
    if (low > high).any():
        raise Undecided(f"{name} ~ {law} has its ends the wrong way round")
    return low, high


def _normal(law: Normal, scope: Scope, name: str) -> tuple[Array, Array]:
    """The mean and a root of the covariance: a number for a number, a matrix for a vector."""
    mean, spread = _finite(law.mean, scope, name), _finite(law.spread, scope, name)
    if spread.ndim == 0 and mean.ndim == 0:
        if spread < 0:
            raise Undecided(f"{name} ~ {law} has a negative variance")
        return mean, spread if law.is_std else np.sqrt(spread)
    if spread.ndim != 2 or spread.shape[0] != spread.shape[1] or mean.shape not in ((), spread.shape[:1]):
        raise Undecided(f"{name} ~ {law}: a vector needs a covariance matrix, for example s^2*I(D)")
    if law.is_std:
        return mean, spread
    values, vectors = np.linalg.eigh(spread)
    if not np.allclose(spread, spread.T) or values.min() < -ROUNDING * max(values.max(), 1):
        raise Undecided(f"{name} ~ {law}: the covariance is not symmetric and positive")
    return mean, vectors * np.sqrt(values.clip(0))
