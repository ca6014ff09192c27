"""Section, figures and sentences of `WordSemantics`."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny.figures import (
    Band,
    Curves,
    Figure,
    Heatmap,
    NullComparison,
    Scatter,
    Section,
)
from ontogeny.quantities import Quantity

SECTION = Section(
    title="Concepts of the corpus in the model",
    definition="The leading directions of the logits after frequent contexts, compared with the "
    "singular vectors (concepts) of the corpus's own centred support matrix S̃ and next-word "
    "probabilities P, plain and weighted by the contexts' frequencies π.",
    symbol="overlap = ‖UₖᵀQₖ‖²_F / k; projection = uₖᵀ L vₖ",
    null="The same corpus with its counted next words in random order: the same word and context "
    "frequencies, any word after any context. Bands hold 95 % of such corpora. Random directions "
    "give k/(V − 1).",
    care="Concept 1 is mostly {word} frequency. Directions with close singular values mix, so "
    "single concepts are less certain than the subspaces they span. Under the cross-entropy the "
    "first directions are those of P weighted by π, and the overlap with S̃ levels off well below "
    "1. A masked model has no next word: its contexts are a word's neighbours on both sides.",
    source="Zhao and Thrampoulidis 2025, sec. 4.4, extended to training runs",
)
LEVEL = 0.05  # of the statement on the order, over all matrices together
_SHUFFLED = "shuffled next words"


QUANTITIES = (
    Quantity(
        "overlap",
        "overlap of the k leading directions",
        symbol="‖UₖᵀQₖ‖²/k",
        heading="overlap of the {label} with the concepts of S̃",
        nulls={"shuffled": _SHUFFLED},
        per="of",
        labels={
            "decoder": "decoder's word embeddings",
            "input": "input's word embeddings",
        },
        select={"matrix": "S"},
        series="",
        facet="k",
        caption="One panel for each number k of leading directions.",
    ),
    Quantity(
        "agreement",
        "rank correlation of projection and σₖ",
        heading="do projections have the order of the singular values?",
        nulls={"shuffled": _SHUFFLED},
        series="matrix",
        caption="Spearman's correlation over concepts at each {checkpoint}.",
    ),
    Quantity(
        "logits_overlap", "overlap of the logits", rows="{direction}", figure=False
    ),
    Quantity(
        "leading_projection",
        "projection of the logits on the concept",
        "logits",
        rows="{leading}",
        figure=False,
    ),
)


def figures(data: xr.Dataset) -> list[Figure]:
    """Return the figures beside the curves of the quantities."""
    steps = data.learned_at.values
    positive = bool((steps[np.isfinite(steps)] > 0).all())
    return [
        Curves(
            "matrices",
            "Which matrix's directions do the logits have?",
            value="overlap",
            series="matrix",
            facet="k",
            select={"of": str(data["of"].values[0])},
            caption="S̃ and centred P, plain and weighted by the contexts' frequencies.",
        ),
        Heatmap(
            "learned-share",
            "How much of each concept is learned",
            value="learned_share",
            y="concept",
            facet="matrix",
            caption="Projection of the logits as a share of its last value. Blank: its change does "
            "not exceed that of shuffled corpora's concepts.",
        ),
        Scatter(
            "order",
            "When each concept is learned",
            x="sigma_share",
            y="learned_at",
            points="concept",
            facet="matrix",
            label="label",
            x_scale="log",
            y_scale="log" if positive else "linear",
            caption="{Checkpoint} at which half of the last projection is reached, against the "
            "singular value. Larger singular values first: falling points.",
        ),
        NullComparison(
            "order-null",
            "Are larger singular values learned first?",
            value="order_all",
            rows="matrix",
            bands=[Band("order_all_low", "order_all_high", _SHUFFLED)],
            caption="Spearman's correlation of singular value and minus the {checkpoint}, all "
            "concepts; band: concepts of shuffled corpora, in the same model.",
        ),
    ]


def sentences(data: xr.Dataset) -> list[str]:
    """Return what was found, in words, each number beside its null."""
    return [*_overlap_sentences(data), *_order_sentences(data)]


def _overlap_sentences(data: xr.Dataset) -> list[str]:
    if "logits" not in data["of"].values:
        return []
    logits = data.sel(of="logits")
    sizes = logits.k.values[np.isfinite(logits.overlap).any(["step", "matrix"]).values]
    if not len(sizes):
        return [
            "The logits are the same for all words at every {checkpoint}: they have no directions."
        ]
    k = int(max(n for n in sizes if n <= 5))
    logits = logits.sel(k=k)
    there = np.flatnonzero(np.isfinite(logits.overlap).any("matrix").values)
    lines = []
    for i in dict.fromkeys((_early(logits, there), there[-1])):
        at = logits.isel(step=int(i))
        best = str(at.matrix.values[int(np.argmax(at.overlap.values))])
        S = at.sel(matrix="S")
        lines.append(
            f"At {{step}} {int(at.step):,} the first {k} directions of the logits overlap by "
            f"{float(S.overlap):.2f} with S̃ (shuffled {float(S.overlap_shuffled_low):.2f} to "
            f"{float(S.overlap_shuffled_high):.2f}, chance {float(S.chance):.3f}), most with "
            f"{best} ({float(at.overlap.max()):.2f})."
        )
    return lines


def _early(overlaps: xr.Dataset, there: np.ndarray) -> int:
    """Return the step at which any matrix has most overlap in the first half of the checkpoints."""
    half = there[: max(len(there) // 2, 1)]
    best = overlaps.overlap.isel(step=half).max("matrix")
    return int(half[int(np.argmax(best.values))])


def _order_sentences(data: xr.Dataset) -> list[str]:
    parts = []
    beyond = []
    for name in data.matrix.values:
        row = data.sel(matrix=name)
        order, low, high = (
            float(row[v]) for v in ("order_all", "order_all_low", "order_all_high")
        )
        if not np.isfinite(order):
            continue
        parts.append(f"{name} {order:.2f} (shuffled {low:.2f} to {high:.2f})")
        p_value = float(row.order_p.sel(top=data.sizes["concept"]))
        if order > max(high, 0.0) and p_value < LEVEL / len(data.matrix):
            beyond.append(str(name))
    if not parts:
        return [
            "Too few concepts are learned beyond the noise of shuffled corpora to tell an order."
        ]
    learned = int(data.learned_at.sel(matrix="S").notnull().sum())
    total = data.sizes["concept"]
    claim = "No matrix's concepts are learned in the order of their singular values"
    if beyond:
        claim = f"Concepts of {', '.join(beyond)} with larger singular values are learned earlier"
    return [
        f"{learned} of {total} concepts of S̃ are learned beyond the noise of shuffled corpora.",
        f"{claim}, beyond what shuffled corpora give; rank correlations: {', '.join(parts)}.",
    ]
