"""Free embeddings and small networks while they learn, as nodes that the report draws."""

from __future__ import annotations

import numpy as np
import xarray as xr

from ontogeny import semantics
from ontogeny.errors import ArgumentError, check_type
from ontogeny.figures import Curves, Figure, Heatmap, Section, attach

from .words import SOURCE

_CURVES = 12  # concepts drawn: more lines than that say nothing


def ufm_view(run: xr.Dataset, title: str = "Free embeddings") -> xr.Dataset:
    """Return the training of free embeddings with the closed form over it.

    Parameters
    ----------
    run
        Of :func:`ontogeny.semantics.train_ufm`.
    title
        Heading of the section, where a page holds several.

    Raises
    ------
    ArgumentError
        If it is something else.

    Examples
    --------
    >>> S = np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 1]])
    >>> view = ufm_view(semantics.train_ufm(S - S.mean(axis=0), d=3, delta=4.0))
    >>> view.sizes["concept"] == 2
    True
    """
    check_type("run", run, xr.Dataset)
    check_type("title", title, str)
    missing = [
        name for name in ("projection", "overlap", "complement_norm") if name not in run
    ]
    if missing:
        raise ArgumentError(
            f"run must come from semantics.train_ufm; it lacks {missing[0]}."
        )
    data = run.isel(concept=slice(0, _CURVES))
    data = data.assign(relative_complement=data.complement_norm / data.logit_norm)
    data.relative_complement.attrs["long_name"] = (
        "share of the logits outside the concepts"
    )
    theory = "theory" if "theory" in data else None
    figures: list[Figure] = [
        Curves(
            "projection",
            "How each concept is learned",
            value="projection",
            series="concept",
            reference=theory,
            reference_label="closed form",
            x="time",
            caption="Projection of the logits on each concept over the time of the flow."
            + (" Dashed: σᵢ aᵢ(t)." if theory else ""),
        ),
        Curves(
            "singular-values",
            "Singular values of the logits",
            value="singular_value",
            series="concept",
            reference=theory,
            reference_label="closed form",
            x="time",
            caption="Sorted at each time, so lines of different concepts never cross.",
        ),
        Curves(
            "overlap",
            "Which matrix's directions the logits have",
            value="overlap",
            series="k",
            facet="matrix",
            x="time",
            caption="Overlap of the k leading directions with those of each matrix.",
        ),
        Curves(
            "complement",
            "What lies outside the concepts",
            value="relative_complement",
            series=None,
            x="time",
            caption="‖L − UUᵀLVVᵀ‖ / ‖L‖: a random start has most of its logits there at first.",
        ),
        Curves(
            "loss",
            "Loss",
            value="loss",
            series=None,
            x="time",
            caption="With its penalty.",
        ),
    ]
    section = Section(
        title,
        "Word and context embeddings that are trained without a network between them.",
        symbol="min Σⱼ wⱼ loss(W hⱼ) + (λ/2)(‖W‖² + ‖H‖²)",
        care="The closed form holds for the aligned start and the square loss only; a small random "
        "start keeps the order of the concepts but learns them later. The cross-entropy learns the "
        "directions of centred P first.",
        source=f"{SOURCE}, sec. 4.4, App. D, Figs 12, 13, 18, 19",
    )
    return attach(data, section, figures, _ufm_sentences(run))


def _ufm_sentences(run: xr.Dataset) -> list[str]:
    sentences = []
    if "theory" in run:
        error = float((abs(run.projection - run.theory) / run.sigma).max())
        sentences.append(
            f"The curves are within {100 * error:.2g} % of their limit of the closed form over the "
            "whole training."
        )
    if run.sizes["concept"] >= 3:
        order = semantics.learning_order(run.sigma.values, run.half_time.values)
        if np.isfinite(order.spearman):
            sentences.append(
                f"Rank correlation of singular value and minus the half-time: {order.spearman:.2f} "
                f"over {order.concepts} concepts."
            )
    return sentences


def confusion_view(
    confusion: xr.Dataset, title: str = "What is predicted", care: str = ""
) -> xr.Dataset:
    """Return confusion matrices along training.

    Parameters
    ----------
    confusion
        Holds ``confusion(step, true, predicted)``, as of
        :func:`ontogeny.semantics.support_confusion` with a ``step`` coordinate; ``exact`` and
        ``superset`` are drawn too where it has them.
    title, care
        Heading of the section, and what to be careful about.

    Raises
    ------
    ArgumentError
        If there is no such variable.

    Examples
    --------
    >>> S = np.array([[1.0, 1], [1, 0]])
    >>> confusion = semantics.support_confusion(np.zeros((3, 2, 2)), S)
    >>> view = confusion_view(confusion.assign_coords(step=[0, 10, 20]))
    >>> sorted(view.attrs)
    ['figures', 'role', 'section', 'statements']
    """
    check_type("confusion", confusion, xr.Dataset)
    check_type("title", title, str)
    check_type("care", care, str)
    if "confusion" not in confusion or set(confusion.confusion.dims) != {
        "step",
        "true",
        "predicted",
    }:
        raise ArgumentError("confusion must hold confusion(step, true, predicted).")
    data = confusion.copy()
    data.confusion.attrs.update(long_name="contexts", units="1")
    figures: list[Figure] = [
        Heatmap(
            "confusion",
            "What is predicted, and what is true",
            value="confusion",
            x="predicted",
            y="true",
            facet="step",
            square=True,
            caption="Rows: true; columns: predicted. A cell holds a number of contexts.",
        )
    ]
    shares = [name for name in ("exact", "superset") if name in data]
    if shares:
        stacked = xr.concat(
            [data[name] for name in shares], dim=xr.Variable("share", shares)
        )
        data = data.assign(right=stacked)
        data.right.attrs.update(long_name="share of the contexts", units="1")
        figures.append(
            Curves(
                "right",
                "How often the set is right",
                value="right",
                series="share",
                caption="Exact: the very set. Superset: that set or one that contains it; the "
                "largest sets, which an untrained model predicts, are supersets for free.",
            )
        )
    section = Section(
        title,
        "For every true class, how many contexts are predicted as each class.",
        care=care,
        source=f"{SOURCE}, Figs 3 and 9",
    )
    return attach(data, section, figures)
