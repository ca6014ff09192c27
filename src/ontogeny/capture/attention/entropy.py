"""Attention entropy, reduced inside the forward pass: no attention map outlives its layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from ...errors import NonFiniteError
from ...inputs import Inputs, ShownTexts
from ...inputs.batches import Batch
from ..activation import sampled_rows
from .collected import MapCollector, by_call


class AttentionCollector(MapCollector):
    """Mean entropy of each text's attention distributions, per layer and head.

    The entropy of one query's weights over the unpadded keys, ``-sum_k p_k log p_k`` in nats with
    ``p`` normalised over them, averaged over a text's ordinary query tokens. ``uniform`` is what
    equal attention to all visible keys would give: the mean of ``log(number of visible keys)``,
    where visible is what any head of any layer reaches (so all keys of a bidirectional model, the
    past of a causal one, the window if every layer has one).

    Parameters
    ----------
    paths
        Modules that may return maps.
    inputs
        The texts.
    tokens
        ``"all"``: the ordinary tokens are queries; ``"last"``: the last token of each text is.
    top
        Numbers k; for each, the mean share of a query's attention that its k strongest keys get.
    shown
        Of how many texts the entropy of every ordinary token is kept, see `ShownTexts`.
    """

    def __init__(
        self,
        paths: Sequence[str],
        inputs: Inputs,
        tokens: str = "all",
        top: Sequence[int] = (),
        n_texts: int = 0,
    ) -> None:
        super().__init__(paths)
        self._ordinary = inputs.ordinary if tokens == "all" else _last_tokens(inputs)
        self._top = tuple(top)
        self._entropies = (
            ShownEntropies(ShownTexts.of(inputs, n_texts)) if n_texts else None
        )
        self._entropy: dict[str, np.ndarray] = {}
        self._mass: dict[str, np.ndarray] = {}
        self._uniform = np.full(len(inputs), np.nan)

    def queries(self, batch: Batch) -> Tensor:
        """Return the batch's queries."""
        return torch.from_numpy(self._ordinary[batch.rows, batch.columns])

    def start(self, batch: Batch) -> set[str] | None:
        """Note the batch's queries and keys."""
        if self._entropies:
            self._entropies.start(batch)
        self._reached = torch.zeros(batch.ids.shape[1:] * 2, dtype=torch.bool)
        self._keys = torch.from_numpy(np.ascontiguousarray(batch.mask))
        return super().start(batch)

    def reduce(self, path: str, weights: Tensor) -> None:
        """Note the mean entropy of each text's queries."""
        queries = self._queries.to(weights.device)
        keys = self._keys.to(weights.device)
        valid = queries[:, None, :, None] & keys[:, None, None, :]
        weights = weights.float().masked_fill(~valid, 0.0)
        self._reached |= (weights.amax(dim=(0, 1)) > 0).cpu()
        # A place that is no query has no mass: 0 / 0 would make the text's entropy NaN.
        mass = weights.sum(dim=-1).masked_fill(~queries[:, None, :], 1.0)
        entropy = torch.special.entr(weights).sum(dim=-1) / mass + mass.log()
        total = entropy.sum(dim=-1, dtype=torch.float64)  # (texts, heads)
        store = self._entropy.setdefault(
            path, np.full((weights.shape[1], len(self._ordinary)), np.nan)
        )
        means = total / queries.sum(dim=-1)[:, None]
        store[:, self._batch.rows] = means.T.cpu().numpy()
        if self._entropies:
            self._entropies.take(path, entropy)
        if self._top:
            self._take_mass(path, weights / mass[..., None], queries)

    def _take_mass(self, path: str, weights: Tensor, queries: Tensor) -> None:
        """Note the mean share of the k strongest keys; `weights` are 0 at other queries."""
        strongest = weights.topk(min(max(self._top), weights.shape[-1]), dim=-1).values
        # (texts, heads, keys).
        sums = strongest.cumsum(-1).sum(dim=2, dtype=torch.float64)
        share = (sums / queries.sum(dim=-1)[:, None, None]).cpu().numpy()
        store = self._mass.setdefault(
            path,
            np.full((len(self._top), weights.shape[1], len(self._ordinary)), np.nan),
        )
        for index, k in enumerate(self._top):
            store[index][:, self._batch.rows] = share[
                :, :, min(k, share.shape[-1]) - 1
            ].T

    def finish(self, output: Any) -> None:
        """Average ``log(number of visible keys)`` over each text's queries."""
        super().finish(output)
        if self._awaited == set():
            return
        # How far a query sees is read off the weights, not the configuration: back to the first key
        # in causal models, less in those with a sliding window, ahead in encoders.
        query, key = self._reached.numpy().nonzero()
        back = int((query - key).max(initial=0))
        ahead = int((key - query).max(initial=0))
        offset = np.arange(self._reached.shape[0])
        offset = offset[None, :] - offset[:, None]
        visible = ((offset >= -back) & (offset <= ahead)).astype(np.int64)
        number = self._batch.mask.astype(np.int64) @ visible.T  # (texts, queries)
        queries = self._queries.numpy()
        logs = np.log(np.maximum(number, 1)) * queries
        with np.errstate(invalid="ignore"):
            self._uniform[self._batch.rows] = logs.sum(axis=1) / queries.sum(axis=1)
        if self._entropies:
            self._entropies.finish(logs)

    def result(self) -> xr.Dataset:
        """Return ``entropy(layer, head, text)``, ``uniform(text)`` and ``tokens(text)``.

        With `top`, also ``top_mass(k, layer, head, text)``; with `shown`, what `ShownEntropies`
        keeps. ``tokens`` counts queries.

        Heads that a layer does not have, and texts without an ordinary token, hold NaN.

        Raises
        ------
        NonFiniteError
            If a map holds NaN.
        """
        tokens = self._ordinary.sum(axis=1)
        self._entropy = by_call(self._entropy)
        self._mass = by_call(self._mass)
        layers = list(self._entropy)
        heads = max(len(values) for values in self._entropy.values())
        entropy = np.full((len(layers), heads, len(tokens)), np.nan)
        for index, (path, values) in enumerate(self._entropy.items()):
            bad = np.flatnonzero(~np.isfinite(values[:, tokens > 0]).all(axis=0))
            if len(bad):
                first = np.flatnonzero(tokens > 0)[bad[0]]
                raise NonFiniteError(
                    f"attention weights of {path!r} are not finite in {len(bad)} texts; "
                    f"the first is text {first}."
                )
            entropy[index, : len(values)] = values
        dataset = xr.Dataset(
            {
                "entropy": (("layer", "head", "text"), entropy, {"units": "nats"}),
                "uniform": ("text", self._uniform, {"units": "nats"}),
                "tokens": ("text", tokens),
            },
            coords={
                "layer": layers,
                "head": np.arange(heads),
                "text": np.arange(len(tokens)),
            },
        )
        if self._entropies:
            dataset = dataset.assign(self._entropies.variables())
        if not self._top:
            return dataset
        top_mass = np.full((len(self._top), *entropy.shape), np.nan)
        for index, path in enumerate(layers):
            values = self._mass[path]
            top_mass[:, index, : values.shape[1]] = values
        return dataset.assign(
            top_mass=(("k", "layer", "head", "text"), top_mass)
        ).assign_coords(k=list(self._top))


def _last_tokens(inputs: Inputs) -> np.ndarray:
    """Return where the last token of each text is, (n, L) bool."""
    last = np.zeros_like(inputs.mask)
    first = inputs.mask.argmax(axis=1)
    last[np.arange(len(inputs)), first + inputs.lengths - 1] = True
    return last


class ShownEntropies:
    """Keeps the entropy of each ordinary token that is shown, mean over heads.

    Parameters
    ----------
    shown
        The texts.
    """

    def __init__(self, texts: ShownTexts) -> None:
        self._entropies = texts
        self._entropy: dict[str, np.ndarray] = {}
        self._uniform = np.full(len(texts.sample), np.nan)

    def start(self, batch: Batch) -> None:
        """Find the tokens of the batch that are shown."""
        self._row, self._slot = sampled_rows(self._entropies.sample, batch)
        self._column = (
            batch.first[self._row] + self._entropies.sample.position[self._slot]
        )

    def take(self, path: str, entropy: Tensor) -> None:
        """Keep what is shown of one module's entropies, (texts, heads, tokens)."""
        store = self._entropy.setdefault(path, np.full(len(self._uniform), np.nan))
        store[self._slot] = entropy.mean(dim=1).cpu().numpy()[self._row, self._column]

    def finish(self, uniform: np.ndarray) -> None:
        """Keep the entropy (texts, tokens) of equal attention to all visible keys."""
        self._uniform[self._slot] = uniform[self._row, self._column]

    def variables(self) -> dict[str, Any]:
        """Return ``shown_entropy(layer, shown_text, shown_place)`` and its uniform counterpart.

        Both float32 in nats, NaN at special tokens and beyond the text.
        """
        tokens = ("shown_text", "shown_place")
        values = np.stack(list(self._entropy.values())).astype(np.float32)
        uniform = self._uniform.astype(np.float32)
        return {
            "shown_entropy": (
                ("layer", *tokens),
                self._entropies.grid(values),
                {"units": "nats"},
            ),
            "shown_entropy_uniform": (
                tokens,
                self._entropies.grid(uniform),
                {"units": "nats"},
            ),
        }
