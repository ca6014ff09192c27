"""The node of concepts over all runs: what the page shows first of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ...figures import Column, Heatmap, Marks, Section, Table, attach
from ...figures.base import Figure
from ...words.formats import with_interval
from ...words.labels import short_names
from ..rows import numbered
from .fitting import START, LayerConcepts

NODE = "shared-concepts"
LayersOfRuns = Mapping[str, tuple[LayerConcepts, Sequence[LayerConcepts]]]
"""By layer what runs share, and what the control runs do that stand beside each other."""
COUNTS = ("in_all", "in_some", "in_one", "born_in_all", "from_start")
CHANGES = ("kept", "unclear", "turned", "lost", "new")

SECTION = Section(
    "Concepts that runs share",
    "One dictionary over the checkpoints of all runs: every token has one sparse code, every "
    "checkpoint its own decoder. A run has a concept if its codes can be read from two of its "
    "checkpoints, and both halves of the texts find it.",
    symbol="Xᵣₜ ≈ U Dᵣₜ",
    null="Tokens in another order in each run: what several runs then share is chance. The order "
    "of births is judged by births dealt anew within each run.",
    care="A concept that one run has from its start and another too may be the {word}s themselves. "
    "Which concepts a run lacks depends on how many latents there are.",
    source="Crosscoders (Lindsey et al. 2024), by exact methods",
)


def node_of(
    layers_of_runs: LayersOfRuns,
    runs: Sequence[str],
    words: str = "",
    section: Section = SECTION,
    more: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Return the node of the concepts of each layer, with those of sets of control runs.

    `more` are counts beside those of all such nodes, over ``layer``.
    """
    counts = {**_counts(layers_of_runs), **(more or {})}
    coords = {"layer": list(layers_of_runs), "run": list(runs)}
    data = xr.Dataset(counts, coords)
    own, controls = next(iter(layers_of_runs.values()))
    read = {"steps_read": own.life}
    if controls:
        read["control_steps_read"] = controls[0].life
    for name, life in read.items():
        if life:
            data[name] = "run", [len(steps) for steps, _ in life.values()]
    shared = _Lines("concept", runs)
    partial = _Lines("partly_shared", runs)
    changed = _Lines("changed_concept", runs)
    names_of_layers = layer_names(list(layers_of_runs))
    for layer, (one, _) in zip(names_of_layers, layers_of_runs.values(), strict=True):
        middle = np.median(np.where(one.birth >= 0, one.birth, np.inf), axis=0)
        order = np.lexsort((-one.present.sum(axis=0), middle))
        shared.add(
            layer,
            one,
            [i for i in order if one.everywhere[i] and not one.from_start[i]],
        )
        partial.add(layer, one, [i for i in order if not one.everywhere[i]])
        if one.change is not None:
            kinds = {kind: i for i, kind in enumerate(reversed(CHANGES))}
            rank = [kinds.get(kind, -1) for kind in one.change["kind"]]
            changed.add(
                layer, one, [i for i in np.argsort(rank, kind="stable") if rank[i] >= 0]
            )
    data = data.merge(shared.data()).merge(partial.data()).merge(changed.data())
    if "concept" in data.dims:
        born = (data.concept_birth >= 0).all("run").values
        if born.any():
            ends = {f"concept_{end}": f"birth_{end}" for end in ("low", "high")}
            names = {"concept_birth": "birth", **ends}
            newborn = data[[*names]].isel(concept=born)
            data = data.merge(newborn.rename({**names, "concept": "newborn"}))
    texts = [words] if words else []
    return attach(_with_names(data), section, _figures(data, runs), texts, role="runs")


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


def _counts(fits: LayersOfRuns) -> dict[str, Any]:
    """Return the counts of each layer, over ``layer``."""
    rows = [_counts_of_layer(*fit) for fit in fits.values()]
    return {
        name: ("layer", np.array([float(r[name]) for r in rows])) for name in rows[0]
    }


def _counts_of_layer(
    one: LayerConcepts, controls: Sequence[LayerConcepts]
) -> dict[str, Any]:
    number = one.present.sum(axis=0)
    (order, p) = one.order()
    change = one.change
    return {
        "in_all": one.everywhere.sum(),
        "in_some": ((number > 1) & ~one.everywhere).sum(),
        "in_one": (number == 1).sum(),
        "from_start": one.from_start.sum(),
        "born_in_all": one.born_everywhere.sum(),
        "births_meet": one.together.sum(),
        "order_correlation": order,
        "order_p": p,
        "by_chance": one.chance,
        **{
            k: np.nan if change is None else (change["kind"] == k).sum()
            for k in CHANGES
        },
        "in_all_control": _most(each.everywhere for each in controls),
        "born_in_all_control": _most(each.born_everywhere for each in controls),
    }


def _most(of_controls: Iterable[np.ndarray]) -> float:
    """Return how many concepts a set of control runs has at most, NaN without controls."""
    return max((float(each.sum()) for each in of_controls), default=np.nan)


class _Lines:
    """Concepts of all layers as lines of tables and figures, along one dimension."""

    def __init__(self, dim: str, runs: Sequence[str]) -> None:
        self.dim = dim
        self.runs = list(runs)
        self.labels: list[str] = []
        self.parts: list[xr.Dataset] = []

    def add(self, layer: str, one: LayerConcepts, chosen: Sequence[int]) -> None:
        """Add the chosen concepts of a layer."""
        if not chosen:
            return
        d = self.dim
        places = np.array(chosen)
        short = layer.removeprefix("the layer at ")
        self.labels += [f"{short} · {one.label[i] or f'concept {i}'}" for i in chosen]
        values: dict[str, Any] = {
            f"{d}_layer": (d, np.full(len(chosen), layer, dtype=object)),
            f"{d}_label": (d, np.array([one.label[i] for i in chosen], dtype=object)),
            f"{d}_runs": (d, one.present[:, places].sum(axis=0).astype(float)),
        }
        for name in ("birth", "low", "high"):
            values[f"{d}_{name}"] = ((d, "run"), getattr(one, name)[:, places].T)
        for k in range(len(self.runs)):
            texts = [_birth_text(one, k, i) for i in chosen]
            values[f"{d}_in_{k}"] = (d, np.array(texts, dtype=object))
        for name, of_each in (one.change or {}).items():
            values[f"{d}_{name}"] = (d, of_each[places])
        lives = {
            run: xr.DataArray(life[:, places].T, {"step": steps}, (d, "step"))
            for run, (steps, life) in one.life.items()
        }
        part = xr.Dataset(values)
        if lives:  # models without a history have none
            names = xr.DataArray(list(lives), dims="run", name="run")
            part[f"{d}_life"] = xr.concat(list(lives.values()), names, join="outer")
        self.parts.append(part)

    def data(self) -> xr.Dataset:
        """Return all of them."""
        if not self.parts:
            return xr.Dataset()
        unique = [
            text if n == 1 else f"{text} ({n})" for text, n in numbered(self.labels)
        ]
        data = xr.concat(self.parts, self.dim, join="outer")
        return data.assign_coords(
            {self.dim: np.array(unique, dtype=object), "run": self.runs}
        )


def _birth_text(one: LayerConcepts, run: int, concept: int) -> str:
    """Return what a table says of a concept in a run."""
    if not one.present[run, concept]:
        return "–"
    if not one.life:
        return "yes"
    birth = float(one.birth[run, concept])
    if birth == START:
        return "from the start"
    if np.isnan(birth):
        return "no clear birth"
    return with_interval(
        birth, float(one.low[run, concept]), float(one.high[run, concept])
    )


def _with_names(data: xr.Dataset) -> xr.Dataset:
    """Return the node with what its variables are."""
    steps = {"birth", "birth_low", "birth_high"}
    words = {
        "in_all": "concepts in all runs",
        "in_some": "in several, not in all",
        "in_one": "in one run alone",
        "from_start": "from the start in every run",
        "born_in_all": "born in every run",
        "births_meet": "births whose intervals overlap",
        "order_correlation": "rank correlation of births between runs",
        "order_p": "p-value of their order",
        "named_in_all": "in all runs, with a name",
        "named_in_all_control": "the most with a name that control runs share",
        "by_chance": "shared by chance",
        "in_all_control": "the most that control runs share",
        "born_in_all_control": "the most that were born in control runs of all",
        "steps_read": "{checkpoint}s that the run was read at",
        "control_steps_read": "{checkpoint}s that its control run was read at",
        **{kind: kind for kind in CHANGES},
        "changed_concept_cosine": "cosine of its directions in both runs",
        "changed_concept_ratio": "strength in the second run by that in the first",
        "birth": "{checkpoint} of the birth",
        "birth_low": "first {checkpoint} of its interval",
        "birth_high": "last {checkpoint} of its interval",
        "changed_concept_ratio_low": "lower end of its interval over texts",
        "changed_concept_ratio_high": "upper end of its interval over texts",
        "concept_life": "strength as a share of its peak",
    }
    for name, text in words.items():
        if name in data:
            data[name].attrs.update(
                long_name=text, units="{step}s" if name in steps else ""
            )
    for dim in ("concept", "partly_shared"):
        for end, text in (("layer", "layer"), ("label", "tokens"), ("runs", "runs")):
            if f"{dim}_{end}" in data:
                data[f"{dim}_{end}"].attrs.update(long_name=text, units="")
    return data


def _figures(data: xr.Dataset, runs: Sequence[str]) -> list[Figure]:
    """Return what is drawn: births in each run, lives, and the concepts in tables."""
    figures: list[Figure] = []
    if "newborn" in data.dims:
        figures.append(
            Marks(
                "shared-births",
                "Births of the concepts that all runs share",
                value="birth",
                interval=("birth_low", "birth_high"),
                rows="newborn",
                series="run",
                caption="One mark for each run, with the interval that holds the birth in 95 % of the "
                "resamples of texts and in fits to halves of them.",
            )
        )
    if "concept_life" in data:
        figures.append(
            Heatmap(
                "shared-lives",
                "The lives of what all runs share",
                value="concept_life",
                x="step",
                y="concept",
                facet="run",
                caption="One row a concept, in the order of its births: its strength in each run, "
                "as a share of its peak there. What every run has from its start is left out.",
            )
        )
    more = (
        "named_in_all births_meet order_correlation order_p by_chance in_all_control "
    )
    more += "born_in_all_control named_in_all_control"
    names = [
        n
        for n in [*CHANGES, *COUNTS, *more.split()]
        if n in data and bool(data[n].notnull().any())
    ]
    figures.append(
        Table(
            "shared-counts",
            "What runs share",
            rows="layer",
            columns=[Column(n) for n in names],
        )
    )
    if "changed_concept" in data.dims:
        d = "changed_concept"
        ends = f"{d}_ratio_low", f"{d}_ratio_high"
        ratio = Column(f"{d}_ratio", "strength by that in the first", interval=ends)
        columns = [
            Column(f"{d}_kind", "change"),
            ratio,
            Column(f"{d}_cosine", "cosine"),
        ]
        title = f"What {runs[1]} made of the concepts of {runs[0]}"
        figures.insert(0, Table("concept-changes", title, rows=d, columns=columns))
    for dim, title in (
        ("concept", "In all runs, but not from the start of each"),
        ("partly_shared", "In some runs"),
    ):
        if dim in data.dims:
            columns = [Column(f"{dim}_runs", "runs")]
            columns += [Column(f"{dim}_in_{k}", run) for k, run in enumerate(runs)]
            figures.append(Table(f"shared-{dim}", title, rows=dim, columns=columns))
    return figures
