"""What pages tell of concepts that were found beyond the token (`learned-concepts`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...control_kinds import is_null
from ...words.formats import plain_text, plural, value_range
from .arrays import ConceptArrays, Place

KIND = "learned-concepts"
APART = "in the learned part alone"
TELLS = 0.6  # AUC from which on a rule is shown that is no name
# What is said of each kind of life.
KINDS = {
    "from the start": "readable and at half of its peak at the first checkpoint",
    "born": "unreadable and below a quarter of its peak at every checkpoint before, readable and "
    "at half of it from then on, in the fits to all texts and to either half; and unreadable from "
    "the first checkpoint with the norms of later ones",
    "grows": "readable and at half of its peak only later, but not absent before in every fit",
    APART: "found in what the first checkpoint does not predict; no birth is judged",
    "not readable": "found, and never readable from one checkpoint on other texts",
}
RULE = (
    "What a layer holds beyond the current token is unmixed, and what fits to both halves of the "
    "texts find is a concept. A name is a rule that its strong places share: chosen on one half of "
    "the texts, judged on the other, and better than 95 % of those of an untrained model."
)
BIRTHS = "A birth tells of learning where it has a name that no control run reaches."
UNNAMED = (
    "without a name: no rule tells their places beyond chance and an untrained model"
)
BANDS = {
    "top": "Strongest",
    "middle": "Middle of its strong places",
    "low": "Weakest of them",
    "near miss": "Near misses: the rule holds, the concept is silent",
}


def is_learned(data: xr.Dataset) -> bool:
    """Return whether a node holds concepts that were found beyond the token."""
    return "refit_strength" in data.variables


def beside_nulls(data: xr.Dataset) -> xr.Dataset:
    """Return a node without the control runs that end trained: they judge nothing."""
    if "run" not in data.dims:
        return data
    return data.isel(run=[is_null(str(run)) for run in data["run"].values])


def counts(data: xr.Dataset, name: str) -> tuple[float, list[float]]:
    """Return a count over all layers, and the same of each control run; NaN where not known."""
    if name not in data:
        return math.nan, []
    own = float(data[name].astype(float).sum(min_count=1))
    data = beside_nulls(data)
    control = f"{name}_control"
    if control not in data or "run" not in data[control].dims:
        return own, []
    others = [dim for dim in data[control].dims if dim != "run"]
    totals = data[control].astype(float).sum(others, min_count=1).values
    return own, totals[np.isfinite(totals)].tolist()


def controls_words(
    of_controls: Sequence[float],
    of_totals: Sequence[float] = (),
    untrained: float = math.nan,
) -> str:
    """Return what control runs give, of how many, and an untrained model, in brackets.

    Nothing where none was read.
    """
    parts = []
    if of_controls:
        some = value_range(of_controls, "{:,.0f}".format)
        of = f" of {value_range(of_totals, '{:,.0f}'.format)}" if of_totals else ""
        parts.append(f"controls {some}{of}")
    if math.isfinite(untrained):
        parts.append(f"untrained {untrained:,.0f}")
    return f" ({', '.join(parts)})" if parts else ""


def found_words(data: xr.Dataset) -> list[str]:
    """Return how many concepts are born and have names, and are found at all, beside controls.

    Examples
    --------
    >>> numbers = {"n_again": 23.0, "n_born": 9.0, "n_named": 12.0}
    >>> found_words(xr.Dataset(numbers))
    ['9 of 23 concepts beyond the {token} were born', '12 have a name']
    >>> found_words(xr.Dataset({**numbers, "again": ("concept", np.ones(40))}))[1:]
    ['12 have a name', '23 are found at the end']
    >>> found_words(xr.Dataset({"n_again": 1.0, "n_named": 1.0}))
    ['1 concept beyond the {token}', '1 has a name']
    >>> found_words(xr.Dataset({"n_again": 16.0, "n_untrained": 60.0}))
    ['16 concepts beyond the {token}', 'an untrained model has 60']
    """
    total, of_total = counts(data, "n_again")
    born, of_born = counts(data, "n_born")
    named, of_named = counts(data, "n_named")
    # With few texts and positions that are learned it may have more than the run.
    untrained = counts(data, "n_untrained")[0]
    # Births and names are also of what was found at earlier steps, or in the learned part.
    every = int(data["again"].notnull().sum()) if "again" in data else round(total)
    if not every:
        return [
            "No concept beyond the {token} is found by fits to both halves of the texts"
        ]
    found = f"{plural(every, 'concept')} beyond the {{token}}"
    parts = [found]
    is_more = every != total
    if math.isfinite(born):
        verb = "was" if born == 1 else "were"
        beside = controls_words(of_born, () if is_more else of_total)
        of_refits = _refits_words(data)
        parts = [f"{born:,.0f}{of_refits} of {found} {verb} born{beside}"]
        beyond = born_beyond_controls(data)
        if born and beyond is not None:
            parts[0] += f", {beyond:,} with a name that no control reaches"
        if not born and named > 0:  # what was found leads, and no zero
            has = "has" if named == 1 else "have"
            parts[0] = f"{named:,.0f} of {found} {has} a name{controls_words(of_named)}"
            parts.append(f"none was born{of_refits}{beside}")
            named = math.nan
    if math.isfinite(named):
        verb = "has" if named == 1 else "have"
        parts.append(f"{named:,.0f} {verb} a name{controls_words(of_named)}")
    if is_more:
        verb = "is" if total == 1 else "are"
        at_end = f"{total:,.0f} {verb} found at the end"
        beside = controls_words(of_total, untrained=untrained)
        return [*parts, f"{at_end}{beside}"]
    if not math.isfinite(born):
        parts[0] += controls_words(of_total)
    if math.isfinite(untrained):
        parts.append(f"an untrained model has {untrained:,.0f}")
    return parts


def _refits_words(data: xr.Dataset) -> str:
    """Return how many births refits count, in brackets; nothing where all count the same."""
    low, high = (counts(data, f"n_born_{end}")[0] for end in ("low", "high"))
    if not low < high:
        return ""
    return f" (refits {low:,.0f}–{high:,.0f})"


def born_beyond_controls(data: xr.Dataset) -> int | None:
    """Return how many births have a name that no control run reaches; None without controls."""
    if "concept_kind" not in data:
        return None
    best = best_of_controls(data)
    if np.isnan(best).all():
        return None
    kind, phi = (
        data[name].transpose("layer", "concept").values
        for name in ("concept_kind", "named_phi")
    )
    is_beyond = (kind == "born") & (phi > best) & ~born_in_controls(data)
    return int(is_beyond.sum())


def born_in_controls(data: xr.Dataset) -> np.ndarray:
    """Return (layer, concept) whether a control run has the concept, by its codes, born there."""
    data = beside_nulls(data)
    if "control_match" not in data or not data.sizes["run"]:
        return np.zeros((data.sizes["layer"], data.sizes["concept"]), dtype=bool)
    match, born = (
        data[f"control_match{end}"].transpose("run", "layer", "concept").values
        for end in ("", "_born")
    )
    same = match >= float(data.least_match)
    return np.asarray((same & np.isfinite(born)).any(axis=0))


def best_of_controls(data: xr.Dataset) -> np.ndarray:
    """Return (layer, concept) the best name of control runs that is about the same as each.

    NaN where no control run was read, and 0 where none of theirs is about it.
    """
    dims = ("layer", "concept")
    data = beside_nulls(data)
    if "named_phi_control" not in data or not data.sizes["run"]:
        return np.full([data.sizes[dim] for dim in dims], np.nan)
    about = data.named_about.transpose(*dims).values
    # The last dimension numbers a control's own concepts; earlier versions called it `concept`.
    phi, of_controls = (
        data[f"named_{name}_control"].transpose("layer", "run", ...).values
        for name in ("phi", "about")
    )
    is_same = of_controls[:, None] == about[:, :, None, None]
    known = np.where(is_same, np.nan_to_num(phi)[:, None], 0.0)
    return np.asarray(known.max(axis=(2, 3)))


def fields(arrays: ConceptArrays, place: Place) -> dict[str, Any]:
    """Return the numbers and words of a card of such a concept beside what all cards have."""
    words = [word for word in arrays.text("words", place).split(" · ") if word]
    more: dict[str, Any] = {
        "words": [plain_text(word) for word in words],
        "half": round(arrays.number("again", place), 2),
        "refits": round(arrays.number("concept_born_share", place), 2),
        "fires": arrays.number("firing", place),
    }
    if "histogram" in arrays:
        more["histogram"] = arrays.of("histogram", place).astype(int).tolist()
        more["bins"] = arrays.data["bin"].values.tolist()
    return {
        name: value
        for name, value in more.items()
        if not isinstance(value, float) or math.isfinite(value)
    }


def told(arrays: ConceptArrays, place: Place, beyond: bool | None) -> dict[str, Any]:
    """Return the sentences of a card.

    `beyond` says whether its name is better than those of control runs about the same; None where
    there is no name or no control run.
    """
    sentences = []
    auc, low, high = (
        arrays.number(f"name_auc{end}", place) for end in ("", "_low", "_high")
    )
    if math.isfinite(auc):
        rule = plain_text(arrays.text("rule", place))
        has_name = bool(arrays.text("name", place))
        # One that tells next to nothing leads a reader astray.
        which = (
            f"The best rule, {rule},"
            if auc >= TELLS
            else "No rule is shown to say what it is: the best"
        )
        if has_name:
            which = "On other texts its name"
        # A rule that holds at many other places as well has a high AUC and names nothing.
        phi = arrays.number("name_phi", place)
        also = f", and correlates {phi:.2f} with them" if math.isfinite(phi) else ""
        sentences.append(
            f"{which} tells its places from others with an AUC of {auc:.2f} "
            f"({low:.2f}–{high:.2f}; chance 0.50){also}"
        )
    matched = _matched(arrays, place) if "control_match" in arrays else []
    # A name beyond those of controls is none where a control has the concept itself.
    if beyond is not None and not _is_born(arrays, place):
        reached = (
            "no control run has one as good"
            if beyond
            else "a control run has one as good"
        )
        sentences.append(f"Of names about the same, {reached}")
    sentences += matched
    return {"told": sentences} if sentences else {}


def _is_born(arrays: ConceptArrays, place: Place) -> bool:
    return bool(born_in_controls(arrays.data)[place])


def _matched(arrays: ConceptArrays, place: Place) -> list[str]:
    """Say which control runs have the concept itself, by its codes, or how near the nearest is."""
    runs = [str(run) for run in arrays.data["run"].values]
    match, born = (arrays.of(f"control_match{end}", place) for end in ("", "_born"))
    null = [i for i, run in enumerate(runs) if is_null(run) and match[i] == match[i]]
    if not null:
        return []
    least = float(arrays.data["least_match"])
    same = [i for i in null if match[i] >= least]
    sentences = []
    for i in same:
        life = f"born at {born[i]:,.0f}" if math.isfinite(born[i]) else "not born"
        has = f"Control run {runs[i]} has it (correlation {match[i]:.2f})"
        sentences.append(f"{has}, {life} there")
    if not same:
        nearest = max(match[i] for i in null)
        sentences.append(
            f"No control run has it: the nearest code correlates {nearest:.2f}, the same from "
            f"{least:.2f} on"
        )
    return sentences


def below(
    arrays: ConceptArrays, place: Place, node: str, checkpoint: str
) -> dict[str, Any]:
    """Return what stands below a card: its correlation with the learned part, its direction.

    `node` is the path of the node, `checkpoint` what the page calls one.
    """
    more = {}
    nearest = arrays.number("in_learned", place)
    if math.isfinite(nearest):
        more["of_learned"] = (
            f"Nearest component of what the first {checkpoint} does not predict: correlation "
            f"{nearest:.2f}"
        )
    if "decoder" in arrays:
        more["direction"] = _direction(arrays, place, node)
    return more


def _direction(arrays: ConceptArrays, place: Place, node: str) -> str:
    """Return two lines of Python that give what the concept writes."""
    layer = str(arrays.data["layer"].values[place[0]])
    step = int(arrays.data["step"].values[arrays.step])
    return (
        f'node = ontogeny.open_study("STUDY")[{node!r}].sel(layer={layer!r}, step={step})\n'
        f"direction = node.decoder.sel(concept={place[1]}).values"
    )


def control_words(data: xr.Dataset, layer: int) -> list[str]:
    """Return what an untrained model and control runs give in a layer, as sentences."""
    one = data.isel(layer=layer)
    sentences = []
    # NaN in a layer that failed.
    if "n_untrained" in one and np.isfinite(one["n_untrained"]):
        sentences.append(
            "By the same rules an untrained model has "
            f"{plural(round(float(one['n_untrained'])), 'component')} beyond the {{token}}, and "
            f"this run {float(one['n_again']):,.0f}{controls_words(counts(one, 'n_again')[1])}."
        )
    named, of_named = counts(one, "n_named")
    if math.isfinite(named):
        sentences.append(
            f"Named in this layer: {named:,.0f}{controls_words(of_named)}. Control runs move as "
            "far and learn nothing."
        )
    return sentences
