"""A dataset that is read lazily, as an opened result is, and counts how often."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing


class _Counting(BackendArray):
    def __init__(self, name, values, reads):
        self.name, self.values, self.reads = name, values, reads
        self.shape, self.dtype = values.shape, values.dtype

    def __getitem__(self, key):
        support = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key):
        self.reads[self.name] += 1
        return self.values[key]


@dataclass
class Counted:
    """A dataset, and how often each of its variables was read."""

    dataset: xr.Dataset
    reads: Counter


def counted(data):
    """Return a dataset that is read lazily, and the counts of its reads."""
    reads = Counter()
    found = {}
    for name, variable in data.data_vars.items():
        array = _Counting(str(name), np.asarray(variable.values), reads)
        lazy = indexing.CopyOnWriteArray(indexing.LazilyIndexedArray(array))
        found[name] = xr.Variable(variable.dims, lazy, variable.attrs)
    return Counted(xr.Dataset(found, data.coords, data.attrs), reads)
