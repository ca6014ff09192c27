"""What the variables of a result are, in words, and in which units.

An observable names its own variables in ``variables``; what all nodes share is named here. Lower
and upper ends, standard errors and the like follow from what they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

Names = Mapping[str, tuple[str, str]]
"""``{variable: (long_name, units)}``; units ``"1"`` of ratios and ``""`` of words and verdicts.

Units ``"as x"`` are those of the variable ``x``.
"""

_OF_ROW = "those of the row's quantity"

_SHARED: Names = {
    "status": ("what became of it", ""),
    "row": ("row of the developmental chart", ""),
    "row_layer": ("module path of the row", ""),
    "row_quantity": ("quantity of the row", ""),
    "noise_known": ("whether the noise of the row was measured", ""),
    "progress": ("share of the way from the first to the last value", "1"),
    "distinct": ("changed above the noise floor", ""),
    "half_step": ("half-change step", "steps"),
    "settled_step": ("step from which on it moves less than its noise", "steps"),
    "first_value": ("first value", _OF_ROW),
    "last_value": ("last value", _OF_ROW),
    "moved": ("changed by more than its noise", ""),
    "only_memory": ("explained by the memory of the reference step as well", ""),
    "own_value": ("a value of its own, no distance to another step", ""),
    "p_uncorrected": ("p-value against chance", "1"),
    "smallest_p": ("smallest p-value that so many steps could give", "1"),
    "p_value": ("p-value against chance, corrected over the page", "1"),
    "p_control": ("p-value against control runs, corrected over the page", "1"),
    "p_control_change": ("p-value of the change against control runs", "1"),
    "p_control_half": ("p-value of the half-change step against control runs", "1"),
    "control_first": ("first value in each control run", _OF_ROW),
    "control_last": ("last value in each control run", _OF_ROW),
    "control_half_step": ("half-change step in each control run", "steps"),
    "run_change": ("change at the steps of each control run", _OF_ROW),
    "run_half_step": ("half-change step at the steps of each control run", "steps"),
    "judgeable": ("enough checkpoints and a known noise for a verdict", ""),
    "can_learn": ("performance on held-out texts or labels", ""),
    "better_sign": ("direction of better performance", "1"),
    "changed": ("changed by more than noise and chance", ""),
    "beyond": ("changed beyond its motion: more than control runs", ""),
    "learned": ("performance improved more than in control runs", ""),
    "developed": ("learned (the name of earlier versions)", ""),
    "run": ("run", ""),
    "step": ("training step", "steps"),
    "step_": ("training step", "steps"),
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
    >>> found = named(data, {"norm": ("mean norm", "activation units")})
    >>> found.norm_low.attrs
    {'long_name': 'mean norm, lower end', 'units': 'activation units'}
    """
    known = {**_SHARED, **names}
    for name, variable in data.variables.items():
        words = variable.attrs.get("long_name") or known.get(str(name), ("", ""))[0]
        units = variable.attrs.get("units") or known.get(str(name), ("", ""))[1]
        if words:
            known[str(name)] = (words, units)
    data = data.copy()
    for name in data.variables:
        found = _found(str(name), known)
        if found is None:
            continue
        words, units = found
        attrs = data[name].attrs
        attrs.setdefault("long_name", words)
        if units := _resolved(units, known):
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


def _found(name: str, known: Names) -> tuple[str, str] | None:
    """Return words and units of a variable, or of what its name says that it belongs to."""
    if name in known:
        return known[name]
    parts = [(name.removesuffix(end), words) for end, words in _BEHIND.items()]
    parts += [(name.removeprefix(start), words) for start, words in _BEFORE.items()]
    for part, (words, units) in parts:
        if part != name and (base := _found(part, known)):
            return words.format(base[0]), base[1] if units is None else units
    return None


def _resolved(units: str, known: Names) -> str:
    """Return units, those of another variable where they are ``as`` that one."""
    if not units.startswith("as "):
        return units
    base = _found(units.removeprefix("as "), known)
    return "" if base is None else _resolved(base[1], known)
