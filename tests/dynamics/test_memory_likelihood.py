"""The likelihood by which the memory of noise is chosen is that of a normal distribution."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from ontogeny.dynamics.memory import NullModel, _deviance


def _least(row, model):
    """Return minus twice the log likelihood at the best level and variance, by search."""
    shape = model.correlation * np.outer(model.size, model.size)

    def deviance(place):
        level = place[0] * model.size
        return -2 * multivariate_normal.logpdf(row, level, np.exp(place[1]) * shape)

    start = [np.mean(row / model.size), np.log(np.var(row / model.size))]
    return minimize(deviance, start, method="Nelder-Mead", options={"fatol": 1e-9}).fun


@pytest.mark.parametrize("seed", range(3))
def test_models_differ_by_their_exact_likelihoods(seed):
    rng = np.random.default_rng(seed)
    times = np.sort(rng.uniform(0, 10, 9))
    row = rng.normal(size=9).cumsum()
    apart = np.abs(np.subtract.outer(times, times))
    models = [
        NullModel(np.ones(9), np.eye(9)),
        NullModel(np.ones(9), np.exp(-apart / 3)),
        NullModel(np.linspace(1, 4, 9), np.exp(-apart)),
    ]
    mine = [_deviance(row, model) for model in models]
    exact = [_least(row, model) for model in models]
    assert np.subtract(mine, mine[0]) == pytest.approx(
        np.subtract(exact, exact[0]), abs=1e-4
    )
