"""What pages tell of concepts that were found beyond the token (`learned-concepts`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...control_kinds import is_null, judging
from ...figures.tables import percent
from ...words.catalogue import learned_concepts as say
from ...words.formats import plain_text, plural, step_text, value_range
from .arrays import ConceptArrays, Place

KIND = "learned-concepts"
HELD_AT = ("top", "middle", "other")
# A rule is shown that is no name from an AUC on, chance outside of its interval, and where it holds
# at a share of the strongest places and of those in the middle.
TELLS = 0.6
CHANCE = 0.5
HELD = 1 / 3


def is_learned(data: xr.Dataset) -> bool:
    """Return whether a node holds concepts that were found beyond the token."""
    return "refit_strength" in data.variables


def beside_nulls(data: xr.Dataset) -> xr.Dataset:
    """Return a node without the control runs that end trained: they judge nothing."""
    if "run" not in data.dims:
        return data
    return judging(data)


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
    refits: str = "",
) -> str:
    """Return what refits give, control runs, of how many, and an untrained model, in brackets.

    Nothing where none was read.
    """
    parts = [refits] if refits else []
    if of_controls:
        some = value_range(of_controls, "{:,.0f}".format)
        totals = value_range(of_totals, "{:,.0f}".format) if of_totals else ""
        of = say.OF.format(counts=totals) if totals else ""
        parts.append(say.CONTROLS.format(counts=some) + of)
    if math.isfinite(untrained):
        parts.append(say.UNTRAINED.format(count=f"{untrained:,.0f}"))
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
    ['It holds 1 concept beyond the {token}', '1 has a name']
    >>> found_words(xr.Dataset({"n_again": 16.0, "n_untrained": 60.0}))
    ['It holds 16 concepts beyond the {token}', 'an untrained model has 60']
    """
    total, of_total = counts(data, "n_again")
    named, of_named = counts(data, "n_named")
    # With few texts and positions that are learned it may have more than the run.
    untrained = counts(data, "n_untrained")[0]
    # Births and names are also of what was found at earlier steps, or in the learned part.
    every = int(data["again"].notnull().sum()) if "again" in data else round(total)
    if not every:
        return [say.NONE_FOUND]
    found = say.FOUND.format(concepts=plural(every, "concept"))
    is_more = every != total
    has_history = math.isfinite(counts(data, "n_born")[0])
    names = []
    if math.isfinite(named):
        has = _of_count(say.HAS_NAME, named)
        names.append(f"{named:,.0f} {has}{controls_words(of_named)}")
    if has_history:
        parts = _births_words(data, every, names, () if is_more else of_total)
    else:
        beside = "" if is_more else controls_words(of_total)
        parts = [f"{say.HOLDS.format(found=found)}{beside}", *names]
    if is_more:
        there = _of_count(say.AT_END if has_history else say.IN_WHOLE, total)
        there = there.format(count=f"{total:,.0f}")
        others = "" if has_history else say.LEARNED_ALONE
        beside = controls_words(of_total, untrained=untrained)
        return [*parts, f"{there}{beside}{others}"]
    if math.isfinite(untrained):
        parts.append(say.UNTRAINED_HAS.format(count=f"{untrained:,.0f}"))
    return parts


def _births_words(
    data: xr.Dataset, every: int, names: list[str], totals: Sequence[float]
) -> list[str]:
    """Return how many of all concepts were born, and have a name: what training made leads.

    Named births that no control run reaches stand first. Where there are none, names do: 29 births of
    a run on words in random order are no concepts to a reader. `names` says how many have one.
    """
    born, of_born = counts(data, "n_born")
    named, of_named = counts(data, "n_named")
    found = say.FOUND.format(concepts=plural(every, "concept"))
    of_all = say.OF.format(counts=found)
    verb = _of_count(say.WAS_BORN, born)
    refits = _refits_words(data)
    some = f"{born:,.0f} ({refits})" if refits else f"{born:,.0f}"
    births = f"{some}{of_all} {verb}{controls_words(of_born, totals)}"
    beyond = born_beyond_controls(data)
    if born and beyond:
        lead = _of_count(say.NAMED_BIRTHS, beyond).format(count=f"{beyond:,}")
        return [lead, f"{say.IN_ALL}{births}", *names]
    names_lead = told_births(data) == 0 if born else named > 0
    if not names_lead:
        return [births, *names]
    lead = _of_count(say.NONE_NAMED, every).format(concepts=found)
    if named > 0:
        lead = f"{named:,.0f}{of_all} {_of_count(say.HAS_NAME, named)}"
    some = f"{born:,.0f} {verb}" if born else say.NONE_BORN
    beside = controls_words(of_born, totals, refits=refits)
    return [f"{lead}{controls_words(of_named)}", f"{some}{beside}"]


def _of_count(words: dict[int, str], count: float) -> str:
    """Return the words for one or for several."""
    return words[1 if count == 1 else 2]


def _refits_words(data: xr.Dataset) -> str:
    """Return how many births refits count; nothing where all count the same."""
    low, high = (counts(data, f"n_born_{end}")[0] for end in ("low", "high"))
    if not low < high:
        return ""
    return say.REFITS.format(low=f"{low:,.0f}", high=f"{high:,.0f}")


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


def told_births(data: xr.Dataset) -> int | None:
    """Return how many births a reader may take for concepts that training made.

    Those with a name that no control run reaches, or with any name where no control run was read;
    None where no names were looked for.
    """
    beyond = born_beyond_controls(data)
    if beyond is not None:
        return beyond
    if "named_phi" not in data or "concept_kind" not in data:
        return None
    return int(((data.concept_kind == "born") & (data.named_phi > 0)).sum())


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
    held = {part: arrays.number(f"name_{part}", place) for part in HELD_AT}
    # A rule that holds at many other places as well has a high AUC and names nothing.
    if all(map(math.isfinite, (auc, *held.values()))):
        shares = {part: percent(share) for part, share in held.items()}
        numbers = f"{auc:.2f}, {low:.2f}–{high:.2f}"
        which = _which(arrays, place)
        sentences.append(say.TELLS.format(which=which, auc=numbers, **shares))
    # A name beyond those of controls is none where a control has the concept itself.
    if beyond is not None and not _is_born(arrays, place):
        sentences.append(say.NAME_UNREACHED if beyond else say.NAME_REACHED)
    sentences += _matched(arrays, place) if "control_match" in arrays else []
    return {"told": sentences} if sentences else {}


def a_rule_tells(arrays: ConceptArrays, place: Place) -> bool:
    """Return whether the best rule of a concept tells its places from others, on other texts.

    One that holds at few of them, and at next to none of the others, has an AUC of .6 as well.
    """
    auc, low = (arrays.number(f"name_auc{end}", place) for end in ("", "_low"))
    held = min(arrays.number(f"name_{part}", place) for part in HELD_AT[:2])
    return auc >= TELLS and low > CHANCE and held >= HELD


def _which(arrays: ConceptArrays, place: Place) -> str:
    """Return what tells its places; a rule that tells next to nothing leads a reader astray."""
    if arrays.text("name", place):
        return say.NAME_TELLS
    if not a_rule_tells(arrays, place):
        return say.NO_RULE_TELLS
    return say.RULE_TELLS.format(rule=plain_text(arrays.text("rule", place)))


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
        is_born = math.isfinite(born[i])
        life = say.BORN_AT.format(step=step_text(born[i])) if is_born else say.NOT_BORN
        correlation = f"{match[i]:.2f}"
        sentences.append(
            say.CONTROL_HAS.format(run=runs[i], match=correlation, life=life)
        )
    if not same:
        nearest = f"{max(match[i] for i in null):.2f}"
        sentences.append(say.NO_CONTROL_HAS.format(match=nearest, least=f"{least:.2f}"))
    return sentences


def of_learned(arrays: ConceptArrays, place: Place, checkpoint: str) -> dict[str, Any]:
    """Return the sentence on its correlation with the learned part; `checkpoint` is a word."""
    nearest = arrays.number("in_learned", place)
    if not math.isfinite(nearest):
        return {}
    match = f"{nearest:.2f}"
    words = say.NEAREST_LEARNED.format(checkpoint=checkpoint, match=match)
    return {"of_learned": words}


def direction(arrays: ConceptArrays, layer: int, node: str) -> str:
    """Return two lines of Python that give what concept number {number} of a layer writes."""
    if "decoder" not in arrays:
        return ""
    path = str(arrays.data["layer"].values[layer])
    step = int(arrays.data["step"].values[arrays.step])
    return (
        f'node = ontogeny.open_study("STUDY")[{node!r}].sel(layer={path!r}, step={step})\n'
        "direction = node.decoder.sel(concept={number}).values"
    )


def control_words(data: xr.Dataset, layer: int) -> list[str]:
    """Return what an untrained model and control runs give in a layer, as sentences."""
    one = data.isel(layer=layer)
    sentences = []
    # NaN in a layer that failed.
    if "n_untrained" in one and np.isfinite(one["n_untrained"]):
        components = plural(round(float(one["n_untrained"])), "component")
        count = f"{float(one['n_again']):,.0f}"
        beside = controls_words(counts(one, "n_again")[1])
        sentences.append(
            say.LAYER_COUNTS.format(components=components, count=count, controls=beside)
        )
    named, of_named = counts(one, "n_named")
    if math.isfinite(named):
        beside = controls_words(of_named)
        sentences.append(say.LAYER_NAMES.format(count=f"{named:,.0f}", controls=beside))
    if of_named:
        sentences.append(say.LAYER_CONTROLS)
    return sentences
