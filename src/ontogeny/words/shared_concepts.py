"""What several runs share of their concepts, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from ..multiple_tests import holm
from .formats import p_value, plural, value_range
from .labels import short_names

COUNTS = ("in_all", "in_some", "in_one", "born_in_all", "from_start")
CHANGES = ("kept", "unclear", "turned", "lost", "new")
LEVEL = 0.05  # of the order of births


def shared_heading(data: xr.Dataset) -> str:
    """Return in one line what was born in all runs, counted over all layers.

    It is empty where nothing was, or not shown to be more than in control runs: that an untrained
    model has concepts is no result of training.
    """
    data, runs = _complete(data), data.sizes["run"]
    if np.isfinite(data.kept).any():
        tuned = data.isel(layer=np.isfinite(data.kept.values))
        return _changes(tuned[list(CHANGES)].sum("layer"), data.run.values, _place(tuned))
    count, of_controls = int(data.born_in_all.sum()), data.born_in_all_control.values
    if not count or (np.isfinite(of_controls).any() and not _more(count, int(of_controls.sum()))):
        return ""
    born = data.isel(layer=data.born_in_all.values > 0)
    agree = int((born.order_p <= LEVEL).sum())
    order = ", in orders that agree" * (agree > 0)
    if 0 < agree < born.sizes["layer"]:
        order += f" in {agree} of {born.sizes['layer']} layers"
    what = f"{plural(count, 'concept')} of {_place(born)}"
    return f"{what} {_were(count)} born in {runs} of {runs} runs{order}"


def shared_mark(data: xr.Dataset) -> dict[str, str | int]:
    """Return the mark of the section in words, and whether it shows what leads the page."""
    runs, of_controls, heading = data.sizes["run"], data.born_in_all_control, shared_heading(data)
    beside = f", {of_controls.sum():.0f} in controls" * bool(of_controls.notnull().all())
    words = f"{data.born_in_all.sum():.0f} born in {runs} of {runs} runs{beside}"
    is_tuned = bool(data.kept.notnull().any())
    return {"mark": heading if is_tuned else words, "mark_shown": int(bool(heading))}


def _place(data: xr.Dataset) -> str:
    """Return the name of the only layer, or how many they are."""
    return str(data.layer.item()) if data.sizes["layer"] == 1 else f"{data.sizes['layer']} layers"


def _more(count: int, of_controls: int) -> bool:
    """Return whether births are shown to be more than those of controls.

    Were they as frequent, each of all births would be one of the runs' own with probability 1/2. A
    plain comparison of two counts would lead the page of every second comparison of mere motion.
    """
    total = count + of_controls
    return sum(math.comb(total, k) for k in range(count, total + 1)) <= LEVEL * 2**total


def shared_sentences(data: xr.Dataset) -> list[str]:
    """Return what each layer's runs share, beside chance and control runs; most births first.

    Parameters
    ----------
    data
        The node of shared concepts, with its counts over ``layer``.
    """
    data = _complete(data)
    changed = np.nan_to_num(data.turned + data.lost + data.new)  # which a tuned run has
    order = np.lexsort((-data.in_all.values, -data.born_in_all.values, -changed))
    texts = [_of_layer(data.isel(layer=i), data.run.values) for i in order.tolist()]
    if not np.isfinite(data.in_all_control).any():
        texts.append("No control run was compared: what is shared from the start may be the words.")
    return texts


def _complete(data: xr.Dataset) -> xr.Dataset:
    """Return the node in words, with p-values over all layers; what old ones lack is NaN."""
    data = data.assign_coords(layer=layer_names(list(map(str, data.layer.values))))
    unknown = xr.full_like(data.in_all, np.nan)
    changes = {kind: data.get(kind, unknown) for kind in CHANGES}
    tests = int(np.isfinite(data.order_p).sum())
    return data.assign(**changes, order_p=("layer", holm(data.order_p)), order_tests=tests)


def layer_names(layers: Sequence[str]) -> list[str]:
    """Return what sentences call layers, from their paths or relative depths.

    Examples
    --------
    >>> layer_names(["h.1.mlp", "h.3.mlp"]), layer_names(["25 % of the depth"])
    (['layer 1', 'layer 3'], ['the layer at 25 % of the depth'])
    """
    kinds = {True: "the layer at {}", False: "layer {}"}
    short = short_names(list(layers))
    return [kinds[" " in n].format(n) if n[:1].isdigit() else n for n in short]


def _changes(one: xr.Dataset, names: np.ndarray, place: str) -> str:
    """Say what a tuned run made of the concepts of its base in one layer, or in several."""
    n = {name: int(one[name]) for name in CHANGES}
    of_base = n["kept"] + n["turned"] + n["lost"]
    words = [f"turned {n['turned']}"] * (n["turned"] > 0) + [f"lost {n['lost']}"]
    text = f"{names[1]} kept {n['kept']} of {plural(of_base, 'concept')} of {names[0]}"
    text = f"{text} in {place}, {', '.join(words)} and got {n['new']} new"
    return text + f"; {n['unclear']} {_were(n['unclear'])} unclear" * (n["unclear"] > 0)


def _of_layer(one: xr.Dataset, names: np.ndarray) -> str:
    n, runs = {name: int(one[name]) for name in COUNTS}, len(names)
    some = f", {n['in_some']} in some of them" if runs > 2 else ""
    fewer = f"{some}, {n['in_one']} in one alone" if n["in_some"] + n["in_one"] else ""
    chance, layer = float(one.by_chance), str(one.layer.item())
    controls = _in_controls(one, "in_all", _which_controls(one))
    if layer.startswith(("layer ", "the layer ")):
        layer = layer[0].upper() + layer[1:]
    text = (
        f"{layer}: {plural(n['in_all'], 'concept')} in {runs} of {runs} runs{controls}"
        f"{fewer or ', none in fewer'}; with each run's tokens in another order "
        f"{chance:.0f} {'is' if chance == 1 else 'are'} shared."
    )
    if np.isfinite(one.kept):
        text = f"{_changes(one, names, str(one.layer.item()))}. {text}"
    if n["from_start"]:
        text += f" {n['from_start']} {_were(n['from_start'])} there from the start in every run."
    if n["born_in_all"]:
        meet = int(one.births_meet)
        text += (
            f" {n['born_in_all']} {_were(n['born_in_all'])} born in every run"
            f"{_in_controls(one, 'born_in_all', 'in all of these control runs')}, of which {meet} "
            f"{'has' if meet == 1 else 'have'} intervals that overlap.{_order(one)}"
        )
    return text


def _in_controls(one: xr.Dataset, name: str, which: str) -> str:
    """Return beside a count of the runs that of their control runs."""
    count = float(one[f"{name}_control"])
    return f" ({which}: {count:.0f})" if np.isfinite(count) else ""


def _which_controls(one: xr.Dataset) -> str:
    """Say which control runs were read for what runs share, and at how many steps."""
    words = f"in all of {one.sizes['run']} control runs, the first of each run"
    steps = [value_range(one[n].values) for n in ("control_steps_read", "steps_read") if n in one]
    return f"{words}, read at {' of '.join(steps)} {{checkpoint}}s"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _order(one: xr.Dataset) -> str:
    """Say whether runs agree on the order of births, where there are enough of them."""
    correlation, p = float(one.order_correlation), float(one.order_p)
    if not np.isfinite(correlation):
        return " Too few to say whether in the same order."
    agrees = "agrees" if p <= LEVEL else "is not shown to agree"
    chance = f"p {p_value(p)}" if p < 1e-4 else f"p = {p_value(p)}"
    chance += " over all layers" * (int(one.order_tests) > 1)
    return f" Their order {agrees} between runs (rank correlation {correlation:.2f}, {chance})."
