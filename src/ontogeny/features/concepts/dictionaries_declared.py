"""What is declared of concepts fitted at each step: presets, variables, quantities, the section."""

from __future__ import annotations

from typing import Any

from ...figures import Section
from ...observables.catalogued import SOME_LAYERS, PresetEntry, Presets
from ...quantities import Quantity
from ...words.names import Names
from .described import DESCRIBED
from .noise import ROTATION_REMOVED

PRESETS: Presets = (
    PresetEntry(
        ("standard", "everything"),
        {"n_concepts": "$concepts", **SOME_LAYERS, "extractor": "svd"},
        60,
    ),
    PresetEntry(
        ("standard", "everything"),
        {"n_concepts": "$concepts", **SOME_LAYERS, "extractor": "ica"},
        70,
    ),
    PresetEntry(
        ("one-model",),
        {"n_concepts": "$concepts", **SOME_LAYERS, "extractor": "ica", "examples": 4},
        50,
    ),
)
VARIABLES: Names = {
    "dictionary": ("dictionary of concepts", "dictionary units"),
    "code_coordinates": ("codes in a basis of both {checkpoint}s", "code units"),
    "codes": ("codes", "code units"),
    "norm": ("norm of the dictionary", "dictionary units"),
    "iterations": ("iterations of the solver", "iterations"),
    "converged": ("whether the solver converged", "1"),
    "refit_dictionary": ("refitted dictionary", "dictionary units"),
    "refit_transform_distance": ("change of the transform by refitting", "1"),
    "refit_log_det": ("log-determinant of the transform of refits", "1"),
    "refit_condition": ("condition number of the transform of refits", "1"),
    "code_likeness": (
        "median correlation of each code with the nearest of the same fit",
        "1",
    ),
    "refit_share": ("share of the squared change by refitting", "1"),
    **DESCRIBED,
}

_REFIT = {"refit": "refitting alone"}
# Of what is compared with the reference step's concepts, in each alignment.
_COMPARED: dict[str, Any] = {
    "unit": "refits",
    "nulls": {**_REFIT, "chance": "chance"},
    "facet": "alignment",
}


def distances_declared(title: str, judged: str, shown: str) -> tuple[Quantity, ...]:
    """Return distances to the reference step, and the reconstruction error.

    Parameters
    ----------
    title
        Of the extractor.
    judged
        The distance that makes the rows.
    shown
        The distance of which absolute values are shown.
    """
    return (
        Quantity(
            "relative_distance",
            "distance relative to the norms",
            per="distance",
            heading="{label} distance to the reference {checkpoint}",
            rows=f"{{layer}} · {title} concepts",
            at={"distance": judged, "alignment": ROTATION_REMOVED},
            relative_to="reference",
            settled_by="refit",
            minimum=0.0,
            caption="Relative to the norms. Left as the solver returned them, then with concepts "
            "permuted and signed, then with the rotation of the activations removed as well.",
            **_COMPARED,
        ),
        Quantity(
            "distance_to_reference",
            "distance to the reference {checkpoint}",
            "dictionary units",
            heading="the same distances, absolute",
            select={"distance": shown},
            relative_to="reference",
            minimum=0.0,
            caption="Not divided by the norms, which grow in training.",
            **_COMPARED,
        ),
        Quantity(
            "reconstruction_error",
            "reconstruction error, relative",
            symbol="‖A − UWᵀ‖ / ‖A‖",
            heading="reconstruction error",
            nulls=_REFIT,
            caption="Fraction of the norm of the activations that the concepts leave out.",
        ),
    )


def correlations_declared() -> tuple[Quantity, ...]:
    """Return correlations with the reference step's concepts, and among those of a step."""
    return (
        Quantity(
            "correlation_to_reference",
            "correlation with the reference {checkpoint}'s concepts",
            per="correlation",
            heading="{label} correlation with the reference {checkpoint}'s concepts",
            caption="Mean |cosine| of columns. Columnwise: of equal columns, which depends on "
            "the order of the concepts. Optimal: after the best one-to-one assignment. "
            "Weighted: the same, each of the reference's concepts weighted by its share of "
            "the reference's absolute codes.",
            optional=True,
            **_COMPARED,
        ),
        Quantity(
            "internal_correlation",
            "internal correlation among the concepts of a {checkpoint}",
            unit="refits",
            nulls=_REFIT,
            optional=True,
            caption="Mean |cosine| of every concept with its match among the others: how "
            "redundant the dictionary is.",
        ),
    )


def section_declared(title: str, judged: str) -> Section:
    """Return heading and margin notes, by the extractor's title and the distance judged by."""
    return Section(
        title=f"{title} concepts",
        definition="A dictionary W of concepts is fitted to the activations of each layer at each "
        "{checkpoint}, and compared with the reference {checkpoint}'s. The verdict uses the "
        f"{judged} distance with the rotation removed.",
        symbol="Aₜ ≈ UₜWₜᵀ,  d(Wₜ, W_ref) / √(‖Wₜ‖² + ‖W_ref‖²)",
        null="Grey: refitting at the same {checkpoint} on resampled texts, in the other "
        "floating-point precision (and with other seeds, where the solver has any), and chance: "
        "the same dictionary in a random basis, or against tokens out of order.",
        care="Without matching, two fits of one model already differ, by order, sign and rotation. "
        "A distance is 0 at the reference {checkpoint} by definition; that {checkpoint} is left "
        "out of the verdict.",
        source="Bernas 2025, Algorithm 2, Defs 40 and 44, 49-52, Figs 13-15 and 17",
    )
