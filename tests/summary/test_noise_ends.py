"""The noise of a change is that of the first and the last step that a row has."""

import numpy as np
import xarray as xr

from ontogeny.summary.noise import _end


def test_ends_are_the_first_and_last_usable_steps_of_each_row():
    rng = np.random.default_rng(0)
    usable = rng.random((40, 7)) < 0.4
    usable[:, 3] = True
    values = xr.DataArray(rng.normal(size=(40, 7)), dims=("row", "step"))
    first = _end(values, xr.DataArray(usable, dims=("row", "step")), last=False)
    last = _end(values, xr.DataArray(usable, dims=("row", "step")), last=True)
    for row, there in enumerate(usable):
        steps = np.flatnonzero(there)
        assert first.values[row] == values.values[row, steps[0]]
        assert last.values[row] == values.values[row, steps[-1]]
