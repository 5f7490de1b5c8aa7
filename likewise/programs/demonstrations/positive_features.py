"""A program whose output is random: so many independent draws of one number, from a generator."""

import numpy as np

# One query, three keys and their values. Softmax attention gives 0.4202 and the values span [-0.234, 0.995], as in the
# reference; its own queries, keys and values could not be recovered, so these and the interval are ours. They were
# picked by a random search that also asked for a mean of the estimator within 0.0008 of the reference's 0.4118: that
# there is a bias is shown here, its size was chosen.
QUERY = np.array([-1.3, 0.4])
KEYS = np.array([[0.0, 0.8], [-0.2, -0.2], [-1.9, -1.4]])
VALUES = np.array([0.995, -0.234, 0.426])


def positive_features_r4(count: int, generator: np.random.Generator) -> np.ndarray:
    """Attention estimated with 4 positive random features: a ratio of two unbiased sums, and not unbiased itself."""
    scale = len(QUERY) ** -0.25
    query, keys = QUERY * scale, KEYS * scale
    directions = generator.standard_normal((count, 4, len(query)))
    of_query = np.exp(directions @ query - query @ query / 2)
    of_keys = np.exp(directions @ keys.T - (keys**2).sum(axis=1) / 2)
    weights = np.einsum("nr,nrk->nk", of_query, of_keys)
    return weights @ VALUES / weights.sum(axis=1)
