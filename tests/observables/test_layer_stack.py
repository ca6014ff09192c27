"""Layers of other sizes are joined as `xarray.concat` joins them."""

import numpy as np
import pytest
import xarray as xr

from ontogeny.observables import layer_stack as layer_stacking
from ontogeny.observables.layer_stack import layer_stack


def piece(concepts, fits=("a", "b")):
    rng = np.random.default_rng(concepts)
    codes = rng.normal(size=(len(fits), 5, concepts)).astype(np.float16)
    numbers = np.arange(concepts)
    words = np.array([f"word {i}" for i in numbers], dtype=object)
    values = {
        "codes": (("fit", "token", "concept"), codes),
        "count": 3.0,
        "fires": (("concept", "place"), np.ones((concepts, 4), np.int8)),
        "words": ("concept", words),
        "number": ("concept", numbers),
        "is_odd": ("concept", numbers % 2 == 1),
        "digest": np.array("ab", dtype=object),
    }
    return xr.Dataset(values, {"fit": list(fits), "concept": numbers})


@pytest.mark.parametrize("largest", [layer_stacking._LARGE, 0])  # 0: all in files
@pytest.mark.parametrize(
    "pieces",
    [
        [piece(3), piece(5), piece(2)],
        [piece(3), piece(3)],
        [piece(3), xr.Dataset(), piece(4, ("b", "a"))],
        [piece(3), piece(4, ("a", "c"))],
        [piece(0), piece(2)],
        [xr.Dataset(), xr.Dataset()],
    ],
    ids=["sizes", "alike", "failed", "other labels", "none found", "all failed"],
)
def test_layers_are_joined_as_xarray_joins_them(pieces, largest, monkeypatch):
    monkeypatch.setattr(layer_stacking, "_LARGE", largest)
    pieces = list(pieces)
    paths = [f"layers.{i}" for i in range(len(pieces))]
    each = [p.expand_dims(layer=[q]) for q, p in zip(paths, pieces, strict=True)]
    options = {"data_vars": "all", "coords": "minimal"}
    joined = xr.concat(each, dim="layer", join="outer", **options)
    stacked = layer_stack(paths, pieces)
    xr.testing.assert_identical(stacked, joined)
    types = [{n: v.dtype for n, v in d.items()} for d in (stacked, joined)]
    assert types[0] == types[1]
    assert not pieces
