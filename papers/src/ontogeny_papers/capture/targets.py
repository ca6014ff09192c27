"""What is differentiated: the logit or log-probability of gold tokens, or of a class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from ontogeny.capture.logits import LogitRows, logits_of
from ontogeny.capture.loss import resolve_objective
from ontogeny.capture.predicted import next_tokens
from ontogeny.capture.trial.causality import check_causal
from ontogeny.errors import ArgumentError, check_choice
from ontogeny.inputs import Inputs
from ontogeny.inputs.batches import Batch

OBJECTIVES = ("auto", "masked", "causal", "class")
QUANTITIES = ("logit", "log-probability")


@dataclass(frozen=True)
class Target:
    """Which output of the model is differentiated.

    Parameters
    ----------
    objective
        ``"masked"``: the gold token at masked positions of the corrupted text; ``"causal"``: the
        next token, at every ordinary token that has one before it; ``"class"``: a class of a
        sequence classifier; ``"auto"``: by the name of the model's class.
    quantity
        ``"logit"``, or ``"log-probability"``, which also counts what happens to all other tokens
        or classes: the two derivatives can differ in sign.
    per
        ``"text"``: one value a text, the mean over its targets; ``"target"``: one value a target.
    label
        For ``"class"``: the class; None means each text's own label.
    mask_fraction, random_state
        For ``"masked"``: which tokens are masked, unless they are chosen.

    Examples
    --------
    >>> Target("masked", quantity="log-probability").per
    'text'
    """

    objective: str = "auto"
    quantity: str = "logit"
    per: str = "text"
    label: int | None = None
    mask_fraction: float = 0.15
    random_state: int = 0

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("quantity", self.quantity, QUANTITIES)
        check_choice("per", self.per, ("text", "target"))
        if self.label is not None and (
            not isinstance(self.label, int) or self.label < 0
        ):
            raise ArgumentError(
                f"label must be a class number or None; got {self.label!r}."
            )

    def resolved(self, model: nn.Module) -> Target:
        """Return the same with its objective read off the model's class, where it is auto.

        Raises
        ------
        ArgumentError
            If the class name does not show it.
        """
        if self.objective != "auto":
            return self
        if any("Classification" in cls.__name__ for cls in type(model).__mro__):
            return replace(self, objective="class")
        try:
            return replace(self, objective=resolve_objective(model))
        except ArgumentError:
            raise ArgumentError(
                f"the class name {type(model).__name__} does not show what the model predicts; "
                "give objective='masked', 'causal' or 'class'."
            ) from None


class Targets:
    """The targets of an input set: which examples there are, and their outputs in each batch.

    An example is a text with all its targets, or a text with one of them.

    Parameters
    ----------
    model, inputs
        The model and its input set, padded as it is read.
    target
        What is differentiated, resolved.
    chosen
        (n, L) bool, the target positions in the columns of `inputs`; None leaves the choice to
        `target`.

    Attributes
    ----------
    text : numpy.ndarray
        (e,) the text of each example.
    position : numpy.ndarray
        (e,) its target, counted from the text's first token; -1 where it stands for all of them,
        and for a class.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Inputs,
        target: Target,
        mask: np.ndarray | None = None,
    ) -> None:
        self._target = target
        self._inputs = inputs
        self._ids = inputs.ids
        self._shift = 0
        self._rows: LogitRows | None = None
        if target.objective == "class":
            self._classes = _classes(inputs, target.label, mask)
            self.text = np.arange(len(inputs))
            self.position = np.full(len(inputs), -1)
            return
        if target.objective == "causal":
            check_causal(model, inputs)
        self._rows = LogitRows.of(model)
        positions = self._positions(mask)
        if target.per == "text":
            self.text = np.flatnonzero(positions.any(axis=1))
            self._columns = positions[self.text]
            self.position = np.full(len(self.text), -1)
        else:
            self.text, column = np.nonzero(positions)
            self._columns = np.zeros((len(column), positions.shape[1]), dtype=bool)
            self._columns[np.arange(len(column)), column] = True
            self.position = column - inputs.mask.argmax(axis=1)[self.text]
        if not len(self.text):
            raise ArgumentError(
                f"no text has a token to predict (objective={target.objective!r})."
            )

    def _positions(self, mask: np.ndarray | None) -> np.ndarray:
        inputs = self._inputs
        target = self._target
        allowed = inputs.ordinary
        if target.objective == "causal":
            self._shift = 1
            allowed = next_tokens(inputs)
        if mask is not None:
            mask = _check_chosen(mask, inputs, allowed)
        if target.objective == "causal":
            return allowed if mask is None else mask
        if mask is None:
            self._ids, positions = inputs.corrupt(
                target.mask_fraction, target.random_state
            )
            return positions
        if inputs.mask_token_id is None:
            raise ArgumentError(
                "these inputs have no mask token, so tokens cannot be masked."
            )
        self._ids = np.where(mask, np.int64(inputs.mask_token_id), inputs.ids)
        return mask

    def __len__(self) -> int:
        return len(self.text)

    @property
    def wanted(self) -> np.ndarray:
        """(e, L) bool: the positions from which each example's targets are predicted."""
        if self._rows is None:
            raise ArgumentError(
                "along='target' needs token targets; a class has no position."
            )
        return (
            np.roll(self._columns, -self._shift, axis=1)
            if self._shift
            else self._columns
        )

    def batches(self, batch_size: int) -> list[tuple[np.ndarray, Batch]]:
        """Return the examples in batches, longest first, each as (examples, batch)."""
        repeated = self._inputs.subset(self.text)
        # `subset` cuts off padding that all texts share: with padding on the left, the columns of
        # the subset begin `offset` columns later in these inputs.
        offset = self._inputs.ids.shape[1] - repeated.ids.shape[1]
        if self._inputs.padding_side == "right":
            offset = 0
        ids = self._ids[self.text, offset : offset + repeated.ids.shape[1]]
        batches = []
        for batch in repeated.batches(batch_size, ids):
            columns = slice(batch.columns.start + offset, batch.columns.stop + offset)
            rows = self.text[batch.rows]
            batches.append((batch.rows, Batch(rows, columns, batch.ids, batch.mask)))
        return batches

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Watch the vocabulary map for as long as batches are fed."""
        with nullcontext() if self._rows is None else self._rows.attached():
            yield

    def choose(self, examples: np.ndarray, batch: Batch) -> None:
        """Begin a batch of `examples`."""
        self._examples = examples
        self._batch = batch
        if self._rows is not None:
            row, column = np.nonzero(self._columns[examples, batch.columns])
            self._row = row
            self._gold = self._inputs.ids[batch.rows, batch.columns][row, column]
            self._rows.choose(batch, row, column - self._shift)

    def total(self, output: object) -> Tensor:
        """End a batch: return the sum over its examples of the mean over their targets."""
        if self._rows is None:
            logits = logits_of(output)
            gold = self._classes[self._batch.rows]
            _check_classes(logits, gold)
            weights = np.ones(len(gold))
        else:
            logits = self._rows.take(output)
            gold = self._gold
            # Each example counts once, however many targets it has.
            weights = 1 / np.bincount(self._row)[self._row]
        index = torch.from_numpy(np.ascontiguousarray(gold)).to(logits.device)
        if self._target.quantity == "log-probability":
            wide = torch.float64 if logits.dtype == torch.float64 else torch.float32
            logits = torch.log_softmax(logits.to(wide), dim=-1)
        values = logits.gather(-1, index[:, None])[:, 0]
        return (values * torch.from_numpy(weights).to(values)).sum()


def _check_chosen(mask: np.ndarray, inputs: Inputs, allowed: np.ndarray) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != inputs.ids.shape:
        raise ArgumentError(
            f"at must be a bool array of shape (texts, tokens) = {inputs.ids.shape}; "
            f"got {mask.dtype} {mask.shape}."
        )
    wrong = np.argwhere(mask & ~allowed)
    if len(wrong):
        raise ArgumentError(
            f"at chooses {len(wrong)} positions that cannot be predicted (special tokens, padding, "
            f"or a first token); the first is text {wrong[0, 0]}, column {wrong[0, 1]}."
        )
    return mask


def _classes(inputs: Inputs, label: int | None, mask: np.ndarray | None) -> np.ndarray:
    if mask is not None:
        raise ArgumentError(
            "at chooses tokens; objective='class' has no token targets."
        )
    if label is not None:
        return np.full(len(inputs), label)
    if inputs.labels is None or np.asarray(inputs.labels).dtype.kind not in "iu":
        raise ArgumentError(
            "objective='class' needs label=, or inputs whose labels are class numbers."
        )
    return np.asarray(inputs.labels, dtype=np.int64)


def _check_classes(logits: object, gold: np.ndarray) -> None:
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(gold):
        got = (
            tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        )
        raise ArgumentError(
            f"objective='class' needs logits of shape (texts, classes) = ({len(gold)}, c); "
            f"got {got}."
        )
    if gold.min() < 0 or gold.max() >= logits.shape[1]:
        raise ArgumentError(
            f"class labels span {gold.min()} to {gold.max()}, but the model has "
            f"{logits.shape[1]} classes."
        )
