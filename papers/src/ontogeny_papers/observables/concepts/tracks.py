"""The lives of concepts: which were there before, which are born, split, merge and die."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from ontogeny.figures import Column, Curves, Figure, Heatmap, Section, Table
from ontogeny.observables.catalogued import PresetEntry
from ontogeny.observables.readings import SeriesReading
from ontogeny.summary.noise import over_steps
from ontogeny.trees import Nodes

from ...distances.tracking import tracks
from .series import ConceptSeries, finished_dictionaries

_EVENTS = {"birth": "births", "split": "splits", "death": "deaths", "merge": "merges"}


@dataclass(frozen=True)
class ConceptTracks(ConceptSeries):
    """Concepts of a `Concepts` node followed from checkpoint to checkpoint, layer by layer.

    Neighbouring checkpoints are matched one-to-one by ``|cos|``; what exceeds the chance level of
    that transition is the same concept (`ontogeny.distances.tracks`). The concepts of the
    reference step are then followed outwards until their track breaks. At the steps where the node
    was refitted, the same rule between fit and refit says how many concepts the solver alone loses.

    Parameters
    ----------
    of
        Name of the `Concepts` node.
    threshold
        Smallest ``|cos|`` of a continuation, 0 to 1; by default each transition's chance level.
    level
        The default threshold is exceeded by this share of matches with a shuffled successor.
    random_state
        Seed of the shuffles.

    Examples
    --------
    >>> ConceptTracks("concepts-ica").name
    'concepts-ica-tracks'
    """

    threshold: float | None = None
    level: float = 0.01
    random_state: int = 0

    kind = "concept-tracks"
    question = "Which concept of one checkpoint becomes which of the next?"
    fewest_steps = 2
    presets = (PresetEntry(("everything",), {"of": "concepts-ica"}, 100),)
    suffix = "tracks"
    variables = {
        "track": ("number of the track a concept belongs to, by birth", ""),
        "cosine": ("|cos| with its predecessor; none where a track begins", "1"),
        "parent": ("track split from; -1 if none", ""),
        "heir": ("track merged into; -1 if none", ""),
        "threshold": ("smallest |cos| of a continuation", "1"),
        "continued": (
            "share of concepts that continue from the checkpoint before",
            "1",
        ),
        "births": ("concepts that resemble none before", "concepts"),
        "splits": ("concepts that split from one which lives on", "concepts"),
        "deaths": ("concepts that resemble none afterwards", "concepts"),
        "merges": ("concepts that merge into one which lives on", "concepts"),
        "line": (
            "concepts of the reference {checkpoint}, the longest followed first",
            "",
        ),
        "line_concept": ("number of the concept at the reference {checkpoint}", "1"),
        "similarity": ("|cos| with its form at the reference {checkpoint}", "1"),
        "followed": (
            "share of the reference {checkpoint}'s concepts followed to here",
            "1",
        ),
        "refit_continued": (
            "share of concepts that a refit of the same {checkpoint} finds again",
            "1",
        ),
        "refit_followed": ("share followed if every checkpoint were a refit", "1"),
        "first_similarity": (
            "|cos| of the first form with the reference's, median",
            "1",
        ),
        "chance_similarity": ("|cos| that chance matches stay below, median", "1"),
        "followed_first": ("share followed back to the first checkpoint", "1"),
        "refit_first": ("share followed back if checkpoints were refits", "1"),
        "median_continued": ("continued per transition, median", "1"),
        "median_refit": ("found again by refits, median", "1"),
        **{f"all_{name}": (name, "1") for name in _EVENTS.values()},
    }
    section = Section(
        title="Lives of concepts ({of})",
        definition="Concepts of neighbouring checkpoints are matched one-to-one by |cos|; above "
        "the chance level of the transition they are the same concept. A newborn that resembles "
        "one which lives on has split from it, a dying one that resembles a survivor has merged.",
        symbol="|cos(wₜⱼ, wₜ₊₁,π₍ⱼ₎)| > q₀.₉₉(shuffled)",
        null="Dashed: the same rule between fits and refits of one checkpoint (resampled texts or "
        "another seed), as often in a row as there are checkpoints.",
        care="The threshold guards against chance, not against drift: a concept followed far can "
        "have become another, which the colour shows. A rotation of the activations between two "
        "checkpoints breaks tracks. Studies fit with one seed at every {checkpoint}, refits do "
        "not.",
        source="Bernas 2025, Defs 49-50 (the matching)",
    )

    def check(self) -> None:
        """Refuse arguments out of range."""
        super().check()
        self._tracks(np.eye(2)[None].repeat(2, axis=0), n_shuffles=1)

    def observe(self, reading: SeriesReading, state: xr.Dataset | None) -> xr.Dataset:
        """Return the tracks, their events, and the lines of the reference step's concepts."""
        steps, _, W, reference = finished_dictionaries(reading)
        tracked = self._tracks(W, steps=steps)
        columns = tracked[["track", "cosine", "parent", "heir", "threshold"]]
        return columns.assign(_events(tracked)).assign(
            _lines(tracked.track.values, W, reference)
        )

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Add what refitting alone loses, and the numbers of the table."""
        if "refit_dictionary" in nodes[self.of]:
            data = data.assign(_refits(data, nodes[self.of]))
        return data.assign(_totals(data))

    def figures(self, data: xr.Dataset, nodes: Nodes) -> Sequence[Figure]:
        """Return the lives of the reference step's concepts, what continues, and the events."""
        columns = [
            Column("followed_first", "share", over="followed back to the first"),
            Column("first_similarity", "|cos|", over="followed back to the first"),
            Column("median_continued", "continue", over="per transition"),
            *(Column(f"all_{name}", name) for name in _EVENTS.values()),
        ]
        refitted = "refit_followed" in data
        if refitted:
            columns.insert(
                1, Column("refit_first", "refits", over="followed back to the first")
            )
            columns.insert(4, Column("median_refit", "refits", over="per transition"))
        return [
            Heatmap(
                "lines",
                "The lives of the reference {checkpoint}'s concepts",
                value="similarity",
                x="step",
                y="line",
                facet="layer",
                caption="One row a concept, the longest followed at the bottom; hatched where its "
                "track is broken. A concept that is followed may still have become another: 1 is "
                "its form at the reference {checkpoint}.",
            ),
            Curves(
                "followed",
                "Concepts of the reference {checkpoint} that can be followed to here",
                value="followed",
                reference="refit_followed" if refitted else None,
                reference_label="if every checkpoint were a refit",
                caption="A track that breaks once stays broken: the share can only fall away from "
                "the reference {checkpoint}.",
            ),
            Curves(
                "continued",
                "Concepts that continue from the checkpoint before",
                value="continued",
                caption="Spacing of the checkpoints matters: neighbours resemble each other more "
                "where checkpoints are denser.",
            ),
            Table("events", "Births, splits, deaths and merges", columns=columns),
        ]

    def words(self, data: xr.Dataset, nodes: Nodes) -> Sequence[str]:
        """Return how many concepts continue and are followed, beside refits."""
        if not data.continued.notnull().any():
            return []

        def percent(name: str) -> str:
            return f"{100 * float(data[name].median()):.0f} %"

        first = (
            f"From one checkpoint to the next {percent('median_continued')} of the concepts "
            f"continue, and {percent('followed_first')} of the reference {{checkpoint}}'s can be "
            f"followed back to {{step}} {int(data.step[0])} (medians over layers)."
        )
        if data.first_similarity.notnull().any():
            first += (
                " There |cos| with what they became is "
                f"{float(data.first_similarity.median()):.2f}; a match by chance stays below "
                f"{float(data.chance_similarity.median()):.2f}."
            )
        words = [first]
        if "median_refit" in data and data.median_refit.notnull().any():
            both = data.followed_first.notnull() & data.refit_first.notnull()
            fewer = (data.followed_first < data.refit_first) & both
            words.append(
                f"A refit of one checkpoint finds {percent('median_refit')} of its concepts "
                f"again; if checkpoints were nothing but refits, {percent('refit_first')} would "
                f"be followed that far. Fewer than that are followed in {int(fewer.sum())} of "
                f"{int(both.sum())} layers."
            )
        return words

    def _tracks(self, W: np.ndarray, **options: Any) -> xr.Dataset:
        settings = {
            name: getattr(self, name) for name in ("threshold", "level", "random_state")
        }
        return tracks(W, **settings, **options)


def _events(tracked: xr.Dataset) -> dict[str, tuple[str, np.ndarray]]:
    """Return counts (step) of what begins at a step and what ended on the way to it."""
    began = tracked.start.values[1:]
    ended = tracked.end.values[:-1]
    counts = {
        name: ((began if word in ("birth", "split") else ended) == word).sum(axis=1)
        for word, name in _EVENTS.items()
    }
    counts["continued"] = (began == "continued").mean(axis=1)
    return {
        name: ("step", np.append(np.nan, values)) for name, values in counts.items()
    }


def _lines(track: np.ndarray, W: np.ndarray, reference: int) -> dict[str, object]:
    """Return the lines of the concepts at the reference position, the longest followed first."""
    unit = W / np.maximum(
        np.linalg.norm(W, axis=1, keepdims=True), np.finfo(float).tiny
    )
    same = track[:, None, :] == track[reference][None, :, None]  # (step, line, concept)
    cosines = np.abs(np.einsum("fl,sfc->slc", unit[reference], unit))
    alive = same.any(axis=-1)
    similarity = np.where(alive, np.where(same, cosines, 0.0).sum(axis=-1), np.nan)
    order = np.argsort(-alive.sum(axis=0), kind="stable")
    return {
        "similarity": (("line", "step"), similarity[:, order].T),
        "line_concept": ("line", order.astype(float)),
        "followed": ("step", alive.mean(axis=1)),
    }


def _refits(data: xr.Dataset, node: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the share of concepts that refits find again, and what would be left of all."""
    share = xr.full_like(data.continued, np.nan)
    limits = over_steps(data.threshold)  # the first step has none of its own
    both = node[["dictionary", "refit_dictionary"]].sel(
        layer=data.layer, step=data.step
    )
    there = both.refit_dictionary.notnull().any(("feature", "concept"))
    for layer in data.layer.values:
        for step in data.step.values[there.sel(layer=layer).values]:
            at = {"layer": layer, "step": step}
            limit = float(limits.sel(at))
            one = both.sel(at).dropna("feature", how="all", subset=["dictionary"])
            if np.isfinite(limit) and one.sizes["feature"]:
                share.loc[at] = _found_again(one, limit)
    filled = over_steps(share).transpose(*data.followed.dims)
    return {"refit_continued": share, "refit_followed": _if_refits(filled, data)}


def _found_again(pair: xr.Dataset, limit: float) -> float:
    names = ("dictionary", "refit_dictionary")
    stack = [pair[name].transpose("feature", "concept").values for name in names]
    tracked = tracks(np.stack(stack).astype(float), threshold=limit)
    return float((tracked.start[1] == "continued").mean())


def _if_refits(share: xr.DataArray, data: xr.Dataset) -> xr.DataArray:
    """Return the products of shares from the reference step outwards.

    A step farther from the reference multiplies by its own share: at the reference step all of its
    concepts are there.
    """
    moved = share.transpose(..., "step")
    at = int(np.argmin(np.abs(data.step.values - data.attrs["reference_step"])))
    values = moved.values.copy()
    values[..., at] = np.where(np.isfinite(values[..., at]), 1.0, np.nan)
    values[..., at:] = np.cumprod(values[..., at:], axis=-1)
    values[..., at::-1] = np.cumprod(values[..., at::-1], axis=-1)
    return moved.copy(data=values)


def _totals(data: xr.Dataset) -> dict[str, xr.DataArray]:
    """Return the numbers of the table, one a layer."""
    has_value = data.continued.notnull().any("step")
    totals = {
        f"all_{n}": data[n].sum("step").where(has_value) for n in _EVENTS.values()
    }
    totals["followed_first"] = data.followed.isel(step=0, drop=True)
    totals["first_similarity"] = data.similarity.isel(step=0, drop=True).median("line")
    totals["chance_similarity"] = data.threshold.median("step")
    totals["median_continued"] = data.continued.median("step")
    if "refit_continued" in data:
        totals["median_refit"] = data.refit_continued.median("step")
        totals["refit_first"] = data.refit_followed.isel(step=0, drop=True)
    return totals
