"""``result.problems()``: what failed in a result of a study."""

from __future__ import annotations

import xarray as xr

from .table import Problems, problems_of


@xr.register_datatree_accessor("problems")
class ProblemsAccessor:
    """What failed in a result, on every `xarray.DataTree` as ``result.problems()``.

    Examples
    --------
    >>> import ontogeny as og
    >>> data = xr.Dataset({"status": ("step", ["failed: no", "done"])}, {"step": [0, 8]})
    >>> result = xr.DataTree.from_dict({"loss": data})
    >>> og.problems.problems_of(result) == result.problems()
    True
    >>> result.problems()
    1 of 2 cells failed
    node  step  layer  why
    loss  0            no
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self._tree = tree.root

    def __call__(self) -> Problems:
        """Return a table of what failed: node, steps, layers and the reason."""
        return problems_of(self._tree)

    def __repr__(self) -> str:
        return "result.problems() lists what failed"
