"""The nodes of a result that hold concepts: those with lives, and those fitted to single steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import xarray as xr

from ...words.catalogue.captions import CAPTIONS
from ...words.content import Content
from ...words.formats import plain_text
from ...words.labels import short_names
from ...words.nodes import Node
from . import learned
from .arrays import ConceptArrays
from .lives import Concept, Concepts

# Whose lives lead the page, the first before others.
KINDS = (learned.KIND, "joint-concepts")
NO_CONCEPT = "no concept"
APART = "not found again"
# Kind of what was born by its strength and cannot be read for long after.
UNCONFIRMED = "birth not confirmed"

_NAMED = ("named", "n_concepts")  # how many have a name, and how many there are
# Defaults of the observable: at the best step, and less elsewhere.
_READABLE = 0.6
_SECOND = 0.1


def asked_for(content: Content) -> bool:
    """Return whether the study has concepts with lives, computed or not."""
    asked = {*content.kinds.values(), *(node.path for node in content.nodes)}
    return not asked.isdisjoint(KINDS)


def failure(content: Content) -> str:
    """Return why concepts with lives are missing from a result, as far as it says so."""
    for node in content.nodes:
        if not {node.path, content.kinds.get(node.path)} & set(KINDS):
            continue
        data = node.dataset
        if "status" in data:
            statuses = sorted({str(status) for status in data["status"].values.ravel()})
            failed = [plain_text(text) for text in statuses if text != "done"]
            if failed:
                return failed[0].removeprefix("failed: ")
        if "strength" in data and "concept_kind" not in data:
            return CAPTIONS["few checkpoints"].format(count=data.sizes["step"])
    return ""


def without_lives(content: Content) -> Node | None:
    """Return the first node of concepts beyond the token of too few checkpoints for lives."""
    nodes = (node for node in content.nodes if learned.is_learned(node.dataset))
    return next((node for node in nodes if not _holds_lives(node.dataset)), None)


def read_concepts(content: Content) -> Concepts | None:
    """Return the concepts of the first node that holds lives, one with names before others."""
    nodes = with_lives(content)
    return of_lives(content, nodes[0]) if nodes else None


def with_lives(content: Content) -> list[Node]:
    """Return the nodes that hold lives: of learned concepts first, then those with names."""
    nodes = [node for node in content.nodes if _holds_lives(node.dataset)]
    return sorted(
        nodes,
        key=lambda node: (
            not learned.is_learned(node.dataset),
            "name" not in node.dataset,
        ),
    )


def _holds_lives(data: xr.Dataset) -> bool:
    dims = {
        "concept_kind": {"layer", "concept"},
        "strength": {"step", "layer", "concept"},
    }
    dims["readability"] = dims["strength"]
    return all(
        name in data and set(data[name].dims) == expected
        for name, expected in dims.items()
    )


def of_lives(content: Content, node: Node) -> Concepts:
    """Return the concepts of a node that holds lives."""
    arrays = ConceptArrays(node.dataset)
    readable = _readable(content, node)
    kinds = arrays.at_step("concept_kind")
    return _gathered(node, arrays, (kinds != NO_CONCEPT) & (kinds != ""), readable)


def _readable(content: Content, node: Node) -> float:
    """Return from which readability on a concept is there."""
    if "least_readability" in node.dataset:
        return float(node.dataset["least_readability"])
    return float(content.arguments_of(node.path).get("readable", _READABLE)) - _SECOND


def of_step(node: Node, step: int) -> Concepts:
    """Return the concepts of a node that were fitted to one step, given by its place.

    Those without any token on which they fire are left out: fits that failed.
    """
    arrays = ConceptArrays(node.dataset, step)
    if learned.is_learned(node.dataset):
        there = np.isfinite(arrays.at_step("again").astype(float))
    else:
        shares = arrays.at_step("token_share").astype(float)
        there = np.isfinite(shares).any(axis=-1)
    # A latent that half of the texts does not find is no concept.
    if "replicates" in arrays:
        there = there & (arrays.at_step("replicates") > 0)
    return _gathered(node, arrays, there, math.nan)


def _gathered(
    node: Node, arrays: ConceptArrays, there: np.ndarray, readable: float
) -> Concepts:
    data = learned.beside_nulls(node.dataset)
    read = _control_steps(data)
    is_learned = learned.is_learned(data)
    layers = [plain_text(label) for label in data["layer"].values]
    shorts = short_names(layers)
    lives = _lives(arrays, readable) if "concept_kind" in arrays else {}
    if is_learned:
        lives["best_control"] = np.where(
            learned.born_in_controls(data), np.inf, learned.best_of_controls(data)
        )
    concepts = [
        _concept(arrays, (i, j), (layers[i], shorts[i]), lives)
        for i, j in np.argwhere(there).tolist()
    ]
    apart = [concept for concept in concepts if concept.kind == APART]
    concepts = [concept for concept in concepts if concept.kind != APART]
    concepts.sort(key=_rank)
    seen = _seen_between if is_learned else _seen_from
    return Concepts(
        node=node,
        arrays=arrays,
        every=tuple(concepts),
        apart=tuple(sorted(apart, key=lambda c: -_or(c.peak, 0.0))),
        latents=int(there.size),
        named=sum(bool(concept.name) for concept in concepts)
        if "name" in arrays
        else None,
        unnamed=_unnamed(arrays),
        named_controls=_named_controls(data),
        born_controls=tuple(
            int(n) for n in _over_layers(data, "n_born_control") if n == n
        ),
        control_steps=int(read.sum()),
        born_seen=seen(arrays, read, readable) if read.any() and lives else 0,
        readable=readable,
    )


def _rank(concept: Concept) -> tuple[float, ...]:
    """Concepts stand by their names: births that no control run reaches, then others of these."""
    has_name = bool(concept.given or concept.name)
    sharp = _or(concept.sharpness, 0.0)
    # Excess kurtosis tells the cards whose idea a reader found from others: 33 and 7 of SmolLM2
    # with an AUC of .94, 12 and 8 of the demo with .65. Of others of the demo without a name a
    # reader found that of 8 in 10 of which a rule tells something, and of 4 in 10 others.
    peak = _or(concept.tails, _or(concept.peak, 0.0))
    beyond = concept.beyond_controls
    # The first screen counts named births that no control reaches: of six the first cards had none.
    is_made = beyond and math.isfinite(concept.born)
    return not has_name, not is_made, not beyond, -sharp, not concept.rule_tells, -peak


def _or(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


def _unnamed(arrays: ConceptArrays) -> str:
    """Return why no layer's concepts could get a name; empty where those of some layer could."""
    if "unnamed_because" not in arrays:
        return ""
    reasons = [plain_text(text) for text in arrays.at_step("unnamed_because").ravel()]
    return reasons[0] if reasons and all(reasons) else ""


def _named_controls(data: xr.Dataset) -> tuple[tuple[int, int | None], ...]:
    """Return how many concepts of each control run got a name, over all layers, of how many."""
    names = ("n_named", "n_again") if learned.is_learned(data) else _NAMED
    counts, of_ = (_over_layers(data, f"{name}_control") for name in names)
    totals = of_ if len(of_) == len(counts) else [math.nan] * len(counts)
    return tuple(
        (int(count), int(total) if math.isfinite(total) else None)
        for count, total in zip(counts, totals, strict=True)
        if math.isfinite(count)
    )


def _control_steps(data: xr.Dataset) -> np.ndarray:
    """Return (step,) whether some control run was read there."""
    name = "token_share_control" if learned.is_learned(data) else "explained_control"
    if name not in data or "run" not in data[name].dims:
        return np.zeros(data.sizes.get("step", 0), dtype=bool)
    has_value = data[name].notnull()
    return np.asarray(
        has_value.any([dim for dim in has_value.dims if dim != "step"]).values
    )


def _seen_from(arrays: ConceptArrays, read: np.ndarray, readable: float) -> int:
    """Return how many of the run's births can be seen from the steps of its control runs alone."""
    # Imported here so that the package opens without what fits concepts.
    from ...concepts.joint.lives import confirmed, first_half, was_low

    if "concept_born" not in arrays:
        return 0
    seen = 0
    for i, born in enumerate(arrays.at_step("concept_born").astype(float)):
        strength, course = (
            arrays.over_steps(n)[i][:, read].T for n in ("strength", "readability")
        )
        start = first_half(strength)
        sure = was_low(strength, start) & confirmed(course >= readable, start)
        seen += int((sure & np.isfinite(born)).sum())
    return seen


def _seen_between(arrays: ConceptArrays, read: np.ndarray, readable: float) -> int:
    """Return how many births have a step of the controls before and two after their interval."""
    steps = arrays.data["step"].values[read]
    after, before = (
        arrays.at_step(f"concept_born_{end}").astype(float)[..., None]
        for end in ("after", "before")
    )
    is_seen = (steps <= after).any(axis=-1) & ((steps >= before).sum(axis=-1) >= 2)
    return int(is_seen.sum())


def _over_layers(data: xr.Dataset, name: str) -> list[float]:
    """Return the sum over layers for each run, NaN where a layer is missing."""
    if name not in data or set(data[name].dims) != {"layer", "run"}:
        return []
    totals: list[float] = (
        data[name].astype(float).sum("layer", skipna=False).values.tolist()
    )
    return totals


def _lives(arrays: ConceptArrays, readable: float) -> dict[str, np.ndarray]:
    """Return the peak of every latent, and from which step on it is readable; NaN where nowhere."""
    known = arrays.over_steps("strength").astype(float)
    strength = np.nan_to_num(known, nan=-math.inf)
    clear = np.nan_to_num(arrays.over_steps("readability"), nan=-1.0) >= readable
    peak = strength.max(axis=2)
    first = arrays.data["step"].values[clear.argmax(axis=2)]
    return {
        "peak": np.where(np.isfinite(peak), peak, np.nan),
        "readable_from": np.where(clear.any(axis=2), first, np.nan),
        "readable_at_end": clear[:, :, -1],
        "end": np.divide(
            known[:, :, -1], peak, out=np.full(peak.shape, np.nan), where=peak > 0
        ),
    }


def _concept(
    arrays: ConceptArrays,
    place: tuple[int, int],
    layer: tuple[str, str],
    lives: Mapping[str, np.ndarray],
) -> Concept:
    def text(name: str) -> str:
        read = plain_text(arrays.text(name, place))
        return "" if read == "nan" else read

    kind = text("concept_kind")
    name = text("name")
    phi = arrays.number("named_phi", place)
    born = arrays.number("concept_born", place)
    return Concept(
        place=place,
        layer=layer[0],
        short_layer=layer[1],
        name=name,
        given=text("name_given"),
        kind=UNCONFIRMED if kind == "born" and not math.isfinite(born) else kind,
        born=born,
        after=arrays.number("concept_born_after", place),
        before=arrays.number("concept_born_before", place),
        settled=arrays.number("concept_settled", place),
        gone=arrays.number("concept_gone", place),
        readable_from=float(lives["readable_from"][place])
        if "readable_from" in lives
        else math.nan,
        peak=float(lives["peak"][place]) if "peak" in lives else math.nan,
        sharpness=phi
        if "named_phi" in arrays
        else arrays.number("concentration", place),
        beyond_controls=bool(phi > lives["best_control"][place])
        if "best_control" in lives
        else False,
        rule_tells=learned.a_rule_tells(arrays, place),
        tails=arrays.number("sharpness", place),
        readable_at_end=bool(lives["readable_at_end"][place])
        if "readable_at_end" in lives
        else True,
        end=float(lives["end"][place]) if "end" in lives else math.nan,
    )
