"""What the variables of a result are, in words, and in which units.

An observable names its own variables in ``variables``; what all nodes share is named here. Lower
and upper ends, standard errors and the like follow from what they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

from .row_variables import NAMES as ROW_NAMES

Names = Mapping[str, tuple[str, str]]
"""``{variable: (long_name, units)}``; units ``"1"`` of ratios and ``""`` of words and verdicts.

Units ``"as x"`` are those of the variable ``x``.
"""

_SHARED: Names = {
    "status": ("what became of it", ""),
    **ROW_NAMES,
    "run": ("run", ""),
    "step": ("training {step}", "{step}s"),
    "step_": ("training {step}", "{step}s"),
    "layer": ("module path", ""),
    "block": ("weight matrix", ""),
    "block_": ("weight matrix", ""),
    "head": ("attention head", ""),
    "concept": ("concept", ""),
    "concept_": ("concept", ""),
    "feature": ("feature of the activations", ""),
    "text": ("text", ""),
    "token": ("token", ""),
    "distance": ("kind of distance", ""),
    "correlation": ("kind of correlation", ""),
    "alignment": ("what is removed first", ""),
    "refit": ("refit", ""),
    "draw": ("draw of the null", ""),
    "pair": ("pair of batches", ""),
    "set": ("input set", ""),
}
# Words and units of what belongs to a variable; its own units where there are none.
_BEFORE = {"relative_": ("{}, relative", "1"), "null_": ("{} of the null", None)}
_BEHIND = {
    "_low": ("{}, lower end", None),
    "_high": ("{}, upper end", None),
    "_stderr": ("{}, standard error", None),
    "_sd": ("{}, standard deviation", None),
    "_floor": ("noise of a change: {}", None),
    "_of_text": ("{} of each text", None),
    "_weights": ("weight of the text: {}", "1"),
    "_replicates": ("{} of replicates", None),
    "_null": ("{} of the null", None),
    "_control": ("{} of the control runs", None),
    "_relative": ("{}, relative", "1"),
    "_by_kind": ("{}, mean by kind", None),
}


def named(data: xr.Dataset, names: Names) -> xr.Dataset:
    """Return `data` with ``long_name`` and ``units`` of every variable whose words are known.

    What a variable already says of itself stays. ``x_low``, ``x_high``, ``x_stderr``, ``x_null``,
    ``null_x`` and the like have the units of ``x``, and ``relative_x`` those of a ratio; ``x``
    itself need not be a variable.

    Parameters
    ----------
    data
        A node of a result.
    names
        The node's own names, which go before the shared ones.

    Examples
    --------
    >>> data = xr.Dataset({"norm": 2.0, "norm_low": 1.0, "status": "done"})
    >>> data = named(data, {"norm": ("mean norm", "activation units")})
    >>> data.norm_low.attrs
    {'long_name': 'mean norm, lower end', 'units': 'activation units'}
    """
    everything = {**_SHARED, **names}
    for name, variable in data.variables.items():
        words = (
            variable.attrs.get("long_name") or everything.get(str(name), ("", ""))[0]
        )
        units = variable.attrs.get("units") or everything.get(str(name), ("", ""))[1]
        if words:
            everything[str(name)] = (words, units)
    data = data.copy()
    for name in data.variables:
        entry = _entry(str(name), everything)
        if entry is None:
            continue
        words, units = entry
        attrs = data[name].attrs
        attrs.setdefault("long_name", words)
        if units := _resolved(units, everything):
            attrs.setdefault("units", units)
    return data


def belongs_to(name: str, data: xr.Dataset) -> str:
    """Return the variable that another one is an end, an error or the like of; empty if of none.

    Examples
    --------
    >>> data = xr.Dataset({"norm": 2.0, "norm_low": 1.0, "low": 1.0})
    >>> belongs_to("norm_low", data), belongs_to("low", data)
    ('norm', '')
    """
    bases = [name.removesuffix(end) for end in _BEHIND if name.endswith(end)]
    bases += [name.removeprefix(start) for start in _BEFORE if name.startswith(start)]
    return next((base for base in bases if base in data), "")


def _entry(name: str, names: Names) -> tuple[str, str] | None:
    """Return words and units of a variable, or of what its name says that it belongs to."""
    if name in names:
        return names[name]
    parts = [(name.removesuffix(end), words) for end, words in _BEHIND.items()]
    parts += [(name.removeprefix(start), words) for start, words in _BEFORE.items()]
    for part, (words, units) in parts:
        if part != name and (base := _entry(part, names)):
            return words.format(base[0]), base[1] if units is None else units
    return None


def _resolved(units: str, names: Names) -> str:
    """Return units, those of another variable where they are ``as`` that one."""
    if not units.startswith("as "):
        return units
    base = _entry(units.removeprefix("as "), names)
    return "" if base is None else _resolved(base[1], names)
