"""What tuning changed in predictions and activations, without a fit: KL and the difference lens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...arrays import to_numpy
from ...capture.predicted import Reduction
from ...figures import Column, Heatmap, Section, Table
from ...inputs import Inputs, ShownTexts
from ...inputs.sampling import TokenSample
from ...inputs.shown import TOKENS
from ...needs import InputSet, Need, Predictor, Readouts
from ...observables import Observable, Reading, Run, by_layer, dataset
from ...observables.own_texts import OwnTexts
from ...observables.pieces import (
    PIECES,
    object_array,
    pieces_variable,
    whole_numbers,
    with_pieces,
)
from ...quantities import Measured, Quantity
from ...summary.noise import MEASURABLE
from ...trees import Nodes

PLACES = ("first tokens", "all tokens")
OF_TEXTS = ("texts", "random tokens")
# Columns of the table of the tokens that differences write.
WRITTEN = {
    "written_first": ("texts", "first tokens"),
    "written_all": ("texts", "all tokens"),
    "written_random": ("random tokens", "all tokens"),
}


@dataclass(frozen=True)
class TunedDifference(Observable):
    """How far predictions and mean activations of each checkpoint are from the first one's.

    For runs whose first checkpoint is the base of a fine-tuning. *KL per token*: the divergence of
    the checkpoint's prediction from the base's at every token of some texts. *Difference lens*: the
    mean difference of a layer's activations on the same texts, at their first tokens and at all,
    and which tokens the vocabulary map makes of it. Beside it stand texts of random tokens: what is
    different there as well needs no text to show it.

    Parameters
    ----------
    layers
        Patterns of layers.
    n_texts, max_tokens
        Texts, each of another unit, and tokens of each.
    first
        How many tokens at the beginning of a text are its first ones.
    top
        Tokens that are listed.
    on
        Input set; the first by default.
    objective
        ``"auto"``, ``"causal"`` or ``"masked"``.
    random_state
        Seed of texts and of random tokens.

    Notes
    -----
    Minder et al. 2025, narrow fine-tuning leaves traces in activation differences.

    Examples
    --------
    >>> TunedDifference("resid", first=5).name
    'tuned-difference'
    """

    layers: str | tuple[str, ...] = "resid"
    n_texts: int = 9
    max_tokens: int = TOKENS
    first: int = 4
    top: int = 10
    on: str | None = None
    objective: str = "auto"
    random_state: int = 0

    kind = "tuned-difference"
    question = "What did tuning change in predictions and activations, token by token?"
    requires = "texts, a base as first checkpoint"
    price = "two passes over a few texts at each step"
    fewest_steps = 2
    obstacles = ("no_prediction",)
    minima = {"n_texts": 2, "first": 1, "top": 1, "max_tokens": 2}
    state_variables = ("token_id", "text_number", PIECES)
    quantities = (
        Quantity(
            "divergence",
            "divergence from the base’s predictions",
            "nats per {token}",
            symbol="D(pₜ ‖ p₀)",
            rows="divergence from the base",
            minimum=0.0,
            caption="Mean over the predicted tokens of the texts. At the base it is 0.",
        ),
        Quantity(
            "apart",
            "length of the mean difference from the base",
            "of the base’s root mean square",
            rows="",
            minimum=0.0,
            series="layer",
            facet="place_of",
            nulls={"random": "texts of random tokens"},
            caption="Grey: the same on texts of random tokens.",
        ),
        Quantity(
            "alike",
            "cosine of the mean differences on texts and on random tokens",
            series="layer",
            facet="place_of",
            optional=True,
            caption="Near 1: tuning moved activations whatever the text.",
        ),
    )
    variables = {
        "token_divergence": ("divergence from the base at each token", "nats"),
        "token_id": ("token", ""),
        "text_number": ("number of the text in its input set", ""),
        "lens_id": ("tokens that the mean difference writes most", ""),
        "lens_logit": ("logit that the mean difference adds", "1"),
        "place_of": ("tokens of a text", ""),
        "of_texts": ("texts", ""),
        "piece_text": ("how a token is written", ""),
        "written_first": ("tokens that the difference at first tokens writes", ""),
        "written_all": ("tokens that the difference at all tokens writes", ""),
        "written_random": ("tokens that the difference of random tokens writes", ""),
    }
    section = Section(
        title="What tuning changed",
        definition="Divergence of each checkpoint’s predictions from the first one’s, and the mean "
        "difference of activations on the same texts, read by the vocabulary map.",
        symbol="D(pₜ ‖ p₀), mean aₜ − mean a₀",
        null="Texts of random tokens; control runs, which move as far.",
        care="The tokens that a difference writes are a reading of its direction, and no proof of "
        "what the model was tuned on.",
        source="Minder et al. 2025",
    )
    charts = (
        Heatmap(
            "token-divergence",
            "Divergence from the base at every token",
            value="token_divergence",
            y="place",
            facet="shown_text",
            caption="Each row is a token of the text, the first at the bottom.",
        ),
        Table(
            "lens",
            "What the mean difference writes",
            columns=[Column(name) for name in WRITTEN],
            rows="rank",
            group="layer",
        ),
    )

    def needs(self) -> Sequence[Need]:
        """Return the model to be asked, its layers, their way to the vocabulary, and the texts."""
        return [
            Predictor(self.on, self.objective),
            OwnTexts(self.layers, self.on),
            Readouts(self.layers, self.on),
            InputSet(self.on),
        ]

    def prepare(self, run: Run) -> xr.Dataset:
        """Return the texts, and what the first checkpoint predicts and holds there."""
        reading = run.reading(int(run.steps[0]))
        texts = InputSet(self.on)
        inputs = reading[texts].padded("right")
        shown = ShownTexts.of(inputs, self.n_texts, self.max_tokens, self.random_state)
        kept = inputs.subset(shown.number)
        ids, mask, special = (
            part[:, : self.max_tokens] for part in (kept.ids, kept.mask, kept.special)
        )
        ordinary = np.unique(inputs.ids[inputs.ordinary])
        rng = np.random.default_rng([self.random_state, 31])
        random = np.where(special, ids, rng.choice(ordinary, ids.shape))
        state = xr.Dataset(
            {
                "ids": (("of_texts", "text", "place"), np.stack([ids, random])),
                "mask": (("text", "place"), mask),
                "special": (("text", "place"), special),
                "unit": ("text", inputs.groups[shown.number]),
                "token_id": (("shown_text", "place"), np.where(mask, ids, -1)),
                "text_number": ("shown_text", shown.number),
                PIECES: pieces_variable(run.pieces(texts)),
            }
        )
        log_p: list[Tensor] = []

        def keep(text: Any, column: Any, token: Tensor, predicted: Tensor) -> Any:
            log_p.append(predicted.float().cpu().clone())
            return {"place": text * ids.shape[1] + column}

        (means, sizes), kept_places = self._read(reading, state, keep)
        places = kept_places["place"]
        base = torch.cat(log_p).numpy()[np.argsort(places, kind="stable")]
        state["base_place"] = ("token", np.sort(places))
        state["base_log_p"] = (("token", "answer"), base)
        for path in means[0]:
            state[f"base_mean {path}"] = (
                ("of_texts", "place_of", f"feature {path}"),
                np.stack([of[path] for of in means]),
            )
            state[f"base_size {path}"] = ("of_texts", [size[path] for size in sizes])
        return state

    def _read(
        self, reading: Reading, state: xr.Dataset, function: Reduction
    ) -> tuple[tuple[list[dict[str, Any]], ...], dict[str, np.ndarray]]:
        """Return means and sizes of both kinds of texts by layer, and numbers of predictions.

        A masked model predicts from masked texts, so that its activations take a pass of their own.
        """
        asked, layers = (reading[need] for need in self.needs()[:2])
        texts, random = self._texts(reading, state)
        row, place = np.nonzero(~texts.special & texts.mask)
        early = place - texts.special[:, :1].sum(axis=1)[row] < self.first
        sample = TokenSample(row, place)
        if asked.masked:
            numbers = asked.reduced(texts, function)
            own = layers.activations(texts, sample)
        else:
            collector = layers.collector(texts, sample)
            numbers = asked.reduced(texts, function, beside=[collector])
            own = collector.result()
        means: list[dict[str, Any]] = []
        sizes: list[dict[str, Any]] = []
        for values in (own, layers.activations(random, sample)):
            rows = {path: to_numpy(A).astype(np.float64) for path, A in values.items()}
            means.append({path: _means(A, early) for path, A in rows.items()})
            sizes.append({path: _size(A) for path, A in rows.items()})
        return (means, sizes), numbers

    def _texts(self, reading: Reading, state: xr.Dataset) -> list[Inputs]:
        """Return the texts, and the same with random tokens."""
        inputs = reading[InputSet(self.on)]
        return [
            Inputs.from_tokens(
                ids,
                mask=state["mask"].values,
                special=state.special.values,
                mask_token_id=inputs.mask_token_id,
                pad_token_id=inputs.pad_token_id,
                vocab_size=inputs.vocab_size,
            )
            for ids in state.ids.values
        ]

    def observe(self, reading: Reading, state: xr.Dataset | None) -> xr.Dataset:
        """Return divergences, mean differences, and what these write."""
        assert state is not None
        readouts = reading[Readouts(self.layers, self.on)]
        (found, _), asked = self._read(reading, state, self._divergence(state))

        def one(path: str, _: Any) -> dict[str, Any]:
            before = state[f"base_mean {path}"].values
            apart = np.stack([of[path] for of in found]) - before
            length = np.linalg.norm(apart, axis=-1)
            size = state[f"base_size {path}"].values[:, None]
            relative = length / np.maximum(size, 1e-30)
            values: dict[str, Any] = {
                "apart": Measured(
                    ("place_of", relative[0]),
                    nulls={"random": ("place_of", relative[1])},
                )
            }
            # Where nothing moved, as at the base itself, there is no angle.
            if (relative > MEASURABLE).all():
                cosine = (apart[0] * apart[1]).sum(axis=-1) / length.prod(axis=0)
                values["alike"] = ("place_of", cosine)
            if path in readouts:
                logits = readouts[path].written(apart.reshape(-1, apart.shape[-1]))
                top = np.argsort(-logits, axis=1, kind="stable")[:, : self.top]
                dims = ("of_texts", "place_of", "rank")
                shape = (*length.shape, top.shape[1])
                values["lens_id"] = (dims, top.reshape(shape))
                logit = np.take_along_axis(logits, top, axis=1)
                values["lens_logit"] = (dims, logit.reshape(shape))
            return values

        layers = by_layer(found[0], one)
        labels = {"place_of": list(PLACES), "of_texts": list(OF_TEXTS)}
        layers = layers.assign_coords(
            {k: v for k, v in labels.items() if k in layers.dims}
        )
        return layers.merge(_of_tokens(asked, state))

    def _divergence(self, state: xr.Dataset) -> Reduction:
        """Return the function from predictions to their divergence from the base's."""
        width = state.sizes["place"]
        known = state.base_place.values
        base = torch.from_numpy(state.base_log_p.values)

        def apart(text: Any, column: Any, token: Tensor, log_p: Tensor) -> Any:
            rows = torch.from_numpy(np.searchsorted(known, text * width + column))
            before = base[rows].to(log_p.device)
            p = log_p.exp()
            each = torch.where(p > 0, p * (log_p - before), torch.zeros_like(p))
            return {"apart": each.sum(dim=1), "place": text * width + column}

        return apart

    def derive(self, data: xr.Dataset, nodes: Nodes) -> xr.Dataset:
        """Return the cells with texts for ids."""
        if "lens_id" not in data:
            return data
        data = with_pieces(
            whole_numbers(data, ["lens_id", "token_id"]), ["lens_id", "token_id"]
        )
        pieces = dict(
            zip(data.piece.values.tolist(), data.piece_text.values, strict=True)
        )
        ids = data.lens_id.isel(step=-1)
        written = {}
        for name, (of_texts, place_of) in WRITTEN.items():
            one = ids.sel(of_texts=of_texts, place_of=place_of, drop=True)
            texts = [str(pieces.get(i, "")) for i in one.values.ravel().tolist()]
            written[name] = (one.dims, object_array(texts).reshape(one.shape))
        return data.assign(written)


def _means(A: np.ndarray, early: np.ndarray) -> np.ndarray:
    """Return mean activations (2, m) of rows (n, m) at first tokens and at all."""
    return np.stack([A[early].mean(axis=0), A.mean(axis=0)])


def _size(A: np.ndarray) -> float:
    return float(np.sqrt((A**2).sum(axis=1).mean()))


def _of_tokens(asked: Mapping[str, np.ndarray], state: xr.Dataset) -> xr.Dataset:
    """Return the mean divergence, and that of each token; NaN where nothing is predicted."""
    values = np.maximum(asked["apart"].astype(np.float64), 0.0)
    grid = np.full(state.token_id.shape, np.nan)
    grid.flat[asked["place"].astype(int)] = values
    mean = Measured.mean(values, state.unit.values[asked["text"]])
    found = dataset({"divergence": mean})
    return found.assign(token_divergence=(("shown_text", "place"), grid))
