"""What a loss owes to a part of a layer's output: its gradient there, and the part's removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..capture.activation import sampled_rows
from ..capture.collect import Collector, feed
from ..capture.forward import check_fits, frozen, quiet
from ..capture.gradients import GradientReading
from ..capture.loss import LossCollector, resolve_objective
from ..capture.predicted import next_tokens
from ..capture.sites import changed
from ..capture.trial.causality import check_causal
from ..errors import ArgumentError, NonFiniteError
from ..inputs.batches import Batch
from ..inputs.sampling import TokenSample


@dataclass(frozen=True, eq=False)
class LossAtTokens:
    """The loss of texts as a function of layer outputs at some of their tokens.

    Texts without such a token are left out, as nothing done to the others can change their loss.

    Parameters
    ----------
    reading
        The model with its inputs and a loss, ``"next-token"`` or ``"masked"``.
    sample
        The tokens, none of them a mean over a text.
    objective
        What `reading` predicts: ``"auto"`` (by the model's class), ``"causal"``, ``"masked"``.
    mask_fraction, random_state
        Which tokens are masked, as in `reading`.

    Examples
    --------
    >>> from ontogeny import Inputs
    >>> from ontogeny.capture.gradients import gradients
    >>> from ontogeny.needs import Gradients
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
    >>> texts = Inputs.from_tokens([[1, 2, 3], [4, 5]])
    >>> reading = gradients(model, Gradients("next-token"), {"text": texts})
    >>> at = LossAtTokens(reading, texts.sample(), "causal")
    >>> at.gradients(["0"])["0"].shape
    (5, 4)
    >>> at.removed("0", np.ones(5), np.zeros(4)).tolist()
    [0.0, 0.0]
    """

    reading: GradientReading
    sample: TokenSample
    objective: str = "auto"
    mask_fraction: float = 0.15
    random_state: int = 0

    @cached_property
    def masked(self) -> bool:
        """Whether masked tokens are predicted, from the text in which they are masked."""
        return resolve_objective(self.reading.model, self.objective) == "masked"

    @cached_property
    def _seen(self) -> tuple[np.ndarray | None, np.ndarray]:
        """Ids as the model sees them where they differ from the inputs', and what is predicted."""
        inputs = self.reading.inputs
        if self.masked:
            return inputs.corrupt(self.mask_fraction, self.random_state)
        check_causal(self.reading.model, inputs)
        return None, next_tokens(inputs)

    @cached_property
    def tokens(self) -> np.ndarray:
        """(texts,) how many tokens are predicted in each text; 0 for texts that are left out."""
        counts = self._seen[1].sum(axis=1)
        return np.where(np.isin(np.arange(len(counts)), self.sample.text), counts, 0)

    @cached_property
    def unmasked(self) -> np.ndarray:
        """(rows,) whether the model sees the token of each row, and not the mask token."""
        if not self.masked:
            return np.ones(len(self.sample), dtype=bool)
        first = self.reading.inputs.mask.argmax(axis=1)[self.sample.text]
        return ~self._seen[1][self.sample.text, first + self.sample.position]

    def _batches(self, ids: np.ndarray | None) -> list[Batch]:
        """Return the texts that hold a row and a predicted token, with `ids` for theirs."""
        reading = self.reading
        predicted = self._seen[1]
        size = reading.settings.batch_size
        inputs = reading.inputs
        return [
            batch
            for batch in inputs.batches(size, ids)
            if predicted[batch.rows, batch.columns].any()
            and len(sampled_rows(self.sample, batch)[1])
        ]

    @cached_property
    def _read(self) -> list[Batch]:
        """The batches as the model sees them; a reading's own loss masks tokens itself."""
        check_fits(self.reading.model, self.reading.inputs, self._seen[0])
        return self._batches(self._seen[0])

    @cached_property
    def losses(self) -> np.ndarray:
        """(texts,) summed loss of each text as it is, in nats; 0 for texts that are left out."""
        return self._summed(self._read, ())

    def gradients(self, labels: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the gradient of the summed loss at every row, by layer: (rows, m) float32.

        One forward and one backward pass over the texts for all layers.

        Parameters
        ----------
        labels
            Sites, such as ``"model.layers.3.mlp"``; see `ontogeny.capture.sites`.

        Raises
        ------
        ArgumentError
            If a layer is not called once in a pass, or does not give one vector per token.
        NonFiniteError
            If a gradient is NaN or infinite.
        """
        reading = self.reading
        nothing = _Nothing(self.sample)
        by_row: dict[str, np.ndarray] = {}
        with (
            quiet(reading.model),
            frozen(reading.model),
            changed(reading.model, labels, nothing.added),
            torch.enable_grad(),
        ):
            for batch in self._batches(None):
                nothing.start(batch)
                count = int(self._seen[1][batch.rows, batch.columns].sum())
                total = count * reading.loss(reading.model, batch)
                for label, values in nothing.gradients(labels, total).items():
                    whole = (len(self.sample), values.shape[1])
                    rows = by_row.setdefault(label, np.zeros(whole, dtype=np.float32))
                    rows[nothing.slot] = values
        for label, rows in by_row.items():
            if not np.isfinite(rows).all():
                raise NonFiniteError(f"gradients at {label!r} are NaN or infinite.")
        return by_row

    def removed(
        self, label: str, codes: np.ndarray, direction: np.ndarray
    ) -> np.ndarray:
        """Return by how much the summed loss of each text (texts,) rises without a part of a layer.

        The layer's output A becomes ``A - codes direction^T`` at the rows of the sample, exactly;
        everything behind the layer is computed anew. One forward pass, over the batches in which
        any code differs from 0; elsewhere the change is 0.

        Parameters
        ----------
        label
            The site.
        codes
            (rows,) how much of `direction` is removed at each row.
        direction
            (m,) in the units of the activations.

        Raises
        ------
        ArgumentError
            If the layer is not called once in a pass, or does not give m features per token.
        NonFiniteError
            If a loss without the part is NaN or infinite.
        """
        concerned = [
            b for b in self._read if codes[sampled_rows(self.sample, b)[1]].any()
        ]
        part = _Part(self.reading.model, label, self.sample, codes, direction)
        rows = (
            np.concatenate([b.rows for b in concerned])
            if concerned
            else np.zeros(0, int)
        )
        change = np.zeros(len(self.losses))
        change[rows] = self._summed(concerned, (part,))[rows] - self.losses[rows]
        return change

    def _summed(self, batches: Sequence[Batch], others: Sequence[Any]) -> np.ndarray:
        """Return the summed loss of the texts of some batches, while `others` watch."""
        reading = self.reading
        predicted = self._seen[1]
        collector = LossCollector(
            reading.model, reading.inputs, predicted if self.masked else None
        )
        by_mask = reading.settings.positions == "mask"
        feed(reading.model, batches, [*others, collector], position_ids=by_mask)
        losses = collector.result()
        return np.where(self.tokens > 0, losses.loss.fillna(0.0) * losses.tokens, 0.0)


class _Rows:
    """The rows of a sample in the batch that is run, and what is done with them at a site."""

    def __init__(self, sample: TokenSample) -> None:
        self._sample = sample

    def begin(self, batch: Batch) -> None:
        """Find the rows of a batch."""
        row, self.slot = sampled_rows(self._sample, batch)
        self._shape = batch.ids.shape
        column = batch.first[row] + self._sample.position[self.slot]
        self._index = torch.from_numpy(row * self._shape[1] + column)
        self._seen: set[str] = set()

    def plus(self, label: str, hidden: Any, rows: Tensor) -> Tensor:
        """Return a site's value with (rows, m) added at the rows."""
        if label in self._seen:
            raise ArgumentError(
                f"{label!r} is called more than once in one forward pass, so it has not one "
                "effect; choose a module that is called once."
            )
        self._seen.add(label)
        added = rows.to(hidden.device, hidden.dtype)
        flat = hidden.flatten(0, 1).index_add(0, self._index.to(hidden.device), added)
        return flat.reshape(hidden.shape)

    def check_shape(self, label: str, hidden: Any, width: int | None = None) -> None:
        """Raise unless the value is (texts, tokens, features), with `width` features."""
        fits = isinstance(hidden, Tensor) and hidden.ndim == 3
        if (
            not fits
            or tuple(hidden.shape[:2]) != tuple(self._shape)
            or (width is not None and hidden.shape[2] != width)
        ):
            got = (
                tuple(hidden.shape)
                if isinstance(hidden, Tensor)
                else type(hidden).__name__
            )
            raise ArgumentError(
                f"{label!r} must give (texts, tokens, features) = ({self._shape[0]}, "
                f"{self._shape[1]}, {width or 'm'}); got {got}."
            )

    def check_called(self, labels: Sequence[str]) -> None:
        """Raise where the pass did not come by a site."""
        never = [label for label in labels if label not in self._seen]
        if never:
            raise ArgumentError(
                f"the forward pass never called {', '.join(never)}; choose layers that take part "
                "in it."
            )


class _Nothing(_Rows):
    """Adds zeros to sites, and differentiates by them."""

    def start(self, batch: Batch) -> None:
        """Begin a batch."""
        self.begin(batch)
        self._zeros: dict[str, Tensor] = {}

    def added(self, label: str, hidden: Any) -> Tensor:
        """Return the site's value plus zeros that require a gradient."""
        self.check_shape(label, hidden)
        shape = (len(self.slot), hidden.shape[2])
        zeros = torch.zeros(
            shape, dtype=hidden.dtype, device=hidden.device, requires_grad=True
        )
        result = self.plus(label, hidden, zeros)
        self._zeros[label] = zeros
        return result

    def gradients(
        self, labels: Sequence[str], total: Tensor
    ) -> Mapping[str, np.ndarray]:
        """Return the derivatives (rows, m) of `total` in each layer; 0 where it has no part."""
        self.check_called(labels)
        zeros = [self._zeros[label] for label in labels]
        if not total.requires_grad:
            return {
                k: np.zeros(tuple(z.shape), np.float32) for k, z in self._zeros.items()
            }
        gradients = torch.autograd.grad(
            total, zeros, allow_unused=True, materialize_grads=True
        )
        arrays = (gradient.detach().float().cpu().numpy() for gradient in gradients)
        return dict(zip(labels, arrays, strict=True))


class _Part(_Rows, Collector):
    """Takes ``codes direction^T`` away at one site; a `Collector` that collects nothing."""

    def __init__(
        self,
        model: nn.Module,
        label: str,
        sample: TokenSample,
        codes: np.ndarray,
        direction: np.ndarray,
    ) -> None:
        super().__init__(sample)
        self._model = model
        self._label = label
        self._codes = torch.from_numpy(np.ascontiguousarray(codes, dtype=np.float32))
        self._direction = torch.from_numpy(
            np.ascontiguousarray(direction, dtype=np.float32)
        )

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Take the part away for as long as batches are fed."""
        with changed(self._model, [self._label], self._without):
            yield

    def _without(self, label: str, hidden: Any) -> Tensor:
        self.check_shape(label, hidden, len(self._direction))
        return self.plus(
            label, hidden, -self._codes[self.slot][:, None] * self._direction
        )

    def start(self, batch: Batch) -> set[str] | None:
        """Find the rows of the batch; wait for nothing."""
        self.begin(batch)
        return set()

    def finish(self, output: Any) -> None:
        """Check that the site was called."""
        self.check_called([self._label])
