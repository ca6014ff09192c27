"""TCAV of one model: how often a concept's direction raises what the model predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from sklearn.base import clone
from torch import nn

from ontogeny.capture.objectives import ReadingSettings
from ontogeny.capture.reading import read
from ontogeny.dynamics.shares import wilson_interval
from ontogeny.errors import ArgumentError, check_choice
from ontogeny.inputs import Inputs
from ontogeny.needs import Activations
from ontogeny.units import Units

from ..concepts.cav import CAV
from ..concepts.concept_directions import ConceptDirection, LabelledRows, fit_direction
from ..dynamics.permutation import permutation_test
from .directional import directional_derivatives
from .targets import Target

EVALUATED = ("positive", "all")
ALONG_OF = {"mean": "all", "last": "last", "cls": "cls"}
"""Which tokens are moved for directions found on each kind of row."""


def tcav(
    model: nn.Module,
    inputs: Inputs,
    layers: str | Sequence[str],
    cav: CAV | None = None,
    *,
    target: Target | str = "auto",
    tokens: str = "mean",
    evaluate: str = "positive",
    train_fraction: float = 2 / 3,
    n_random: int = 100,
    n_refits: int = 20,
    random_state: int = 0,
    settings: ReadingSettings | None = None,
) -> xr.Dataset:
    """Return TCAV scores of a labelled set of texts at each layer, with their tests.

    ``TCAV = fraction of texts whose directional derivative along the concept's direction is
    positive`` (Kim et al., ICML 2018; the report, sec. 6.2). The direction is found on
    `train_fraction` of the texts and the score taken on the others. It is compared with the scores
    of directions for shuffled labels by a two-sided permutation test, corrected over layers: under
    shuffled labels it is exact, whereas a score far from 1/2 by itself shows nothing, because
    gradients share directions and most random directions then score near 0 or 1. For the same
    reason the score may show nothing at all: where more than 5 % of the random scores are 0 or 1,
    none is significant. The mean ``derivative`` does not saturate; it is tested in the same way.

    Texts that repeat, or that share a document (`Inputs.groups`), are kept on one side of the
    split, and labels are shuffled between documents, see `ontogeny.units.Units.shuffles`.

    Random concepts of other texts, as TCAV's authors make them: `tcav_against_random`.

    Parameters
    ----------
    model
        A masked or causal language model, or a sequence classifier.
    inputs
        Texts with two labels; the concept is the larger of them.
    layers
        Patterns over module paths.
    cav
        How directions are found; ``CAV()`` by default.
    target
        What is differentiated; see `Target`.
    tokens
        What a row of activations is: ``"mean"`` over a text's ordinary tokens, ``"last"`` or
        ``"cls"``. The derivative moves the same tokens.
    evaluate
        Held-out texts that are counted: those with the concept (``"positive"``), or ``"all"``.
    train_fraction, random_state
        The split, and the seed of shuffles, resamples and masks.
    n_random, n_refits
        Shuffled label sets, and bootstrap refits of the direction.
    settings
        Batch size and positions.

    Returns
    -------
    xarray.Dataset
        Over ``layer``: ``score``, ``score_low`` and ``score_high`` (Wilson's interval over texts,
        95 %), ``examples`` (texts counted), ``zeros`` (share of derivatives
        that are exactly 0), ``random_score(layer, draw)``, ``refit_score(layer, refit)``,
        ``p_value``, ``p_corrected``, the mean ``derivative`` along the unit direction with
        ``random_derivative(layer, draw)``, ``derivative_p_value`` and ``derivative_p_corrected``,
        ``accuracy`` (balanced, held-out), ``random_accuracy(layer, draw)``, ``cosine(layer,
        refit)`` of the refits.

    Raises
    ------
    ArgumentError
        If there are no labels, not two classes, too few texts to split, or the target does not
        depend on the tokens that are moved in some layer.
    LayerMatchError
        If a pattern matches no module.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 4), nn.Linear(4, 9))
    >>> ids = np.random.default_rng(0).integers(1, 9, (40, 5))
    >>> texts = Inputs.from_tokens(ids, labels=np.arange(40) % 2)
    >>> data = tcav(model, texts, "1", target="causal", n_random=9, n_refits=2)
    >>> dict(data.random_score.sizes)
    {'layer': 1, 'draw': 9}
    """
    inputs = Inputs.coerce(inputs)
    settings = settings or ReadingSettings()
    rows = LabelledRows.of(inputs, tokens, train_fraction, random_state)
    patterns = layers if isinstance(layers, str) else tuple(layers)
    need = Activations(patterns, None, tokens, None)
    activations = read(model, [need], {"inputs": inputs}, settings)[need]
    cav = CAV() if cav is None else cav
    fits = {
        path: fit_direction(A, rows, clone(cav), n_random, n_refits, random_state)
        for path, A in activations.items()
    }
    pieces = concept_scores(
        model,
        inputs,
        rows,
        fits,
        target=target,
        along=ALONG_OF[tokens],
        evaluate=evaluate,
        settings=settings,
    )
    for path, piece in pieces.items():
        check_influence(path, piece)
    data = xr.concat([pieces[path] for path in fits], dim="layer").assign_coords(
        layer=list(fits)
    )
    test = permutation_test(data.score, data.random_score, centre=0.5)
    slope = permutation_test(data.derivative, data.random_derivative, centre=0.0)
    return data.drop_vars("positive").assign(
        p_value=("layer", test.p_value),
        p_corrected=("layer", test.p_corrected),
        derivative_p_value=("layer", slope.p_value),
        derivative_p_corrected=("layer", slope.p_corrected),
        accuracy=("layer", [f.accuracy for f in fits.values()]),
        random_accuracy=(("layer", "draw"), [f.random_accuracy for f in fits.values()]),
        cosine=(("layer", "refit"), [f.cosines for f in fits.values()]),
    )


def concept_scores(
    model: nn.Module,
    inputs: Inputs,
    rows: LabelledRows,
    directions: Mapping[str, ConceptDirection],
    *,
    target: Target | str,
    along: str,
    evaluate: str,
    settings: ReadingSettings,
) -> dict[str, xr.Dataset]:
    """Return scores of fitted directions by layer, all of them in one backward pass per batch.

    Each dataset holds ``score`` with its interval, ``examples``, ``zeros``, ``random_score(draw)``,
    ``refit_score(refit)``, the mean ``derivative`` and ``random_derivative(draw)``, and
    ``positive(example)``: whether each text's derivative is positive. Directions against random
    texts add ``against_score`` and ``against_derivative``, with ``against_random_score(draw)`` and
    ``against_random_derivative(draw)`` of the random concepts.
    """
    check_choice("evaluate", evaluate, EVALUATED)
    places = evaluated(rows, evaluate)
    texts = inputs.subset(rows.text[places])
    stacked = {path: direction.stacked() for path, direction in directions.items()}
    data = directional_derivatives(
        model, texts, list(stacked), stacked, target, along=along, settings=settings
    )
    return {
        path: _scores(
            data.derivative.sel(layer=path).values, direction, rows.units(places)
        )
        for path, direction in directions.items()
    }


def evaluated(rows: LabelledRows, evaluate: str) -> np.ndarray:
    """Return the held-out rows that are counted: all, or those with the concept."""
    return rows.test if evaluate == "all" else rows.test[rows.positive[rows.test]]


def check_influence(path: str, scores: xr.Dataset) -> None:
    """Raise where all derivatives of a layer are zero: a score of 0 would mean something else."""
    if float(scores.zeros) == 1:
        raise ArgumentError(
            f"the target does not depend on the tokens that are moved in {path}: all derivatives "
            "are zero (the last token of a causal model predicts nothing, for one)."
        )


def _scores(
    derivative: np.ndarray, concept: ConceptDirection, units: Units
) -> xr.Dataset:
    """Return scores from the derivatives (k, examples) along the stacked directions."""
    ends = np.cumsum([len(directions) for directions in concept.kinds.values()])
    kinds = dict(zip(concept.kinds, np.split(derivative, ends[:-1]), strict=True))
    derivatives = kinds["direction"][0]
    counted = units.effective_count(derivatives > 0)
    low, high = wilson_interval((derivatives > 0).mean() * counted, counted)
    scores = xr.Dataset(
        {
            "score": (derivatives > 0).mean(),
            "score_low": low,
            "score_high": high,
            "examples": len(derivatives),
            "zeros": float((derivatives == 0).mean()),
            "refit_score": ("refit", (kinds["refits"] > 0).mean(axis=1)),
            "random_score": ("draw", (kinds["random"] > 0).mean(axis=1)),
            "derivative": derivatives.mean(),
            "random_derivative": ("draw", kinds["random"].mean(axis=1)),
            "positive": ("example", derivatives > 0),
        }
    )
    if "against" not in kinds:
        return scores
    score = (kinds["against"] > 0).mean(axis=1)
    slope = kinds["against"].mean(axis=1)
    return scores.assign(
        against_score=score[0],
        against_derivative=slope[0],
        against_random_score=("draw", score[1:]),
        against_random_derivative=("draw", slope[1:]),
    )
