"""The logits of chosen positions, with the vocabulary map given no others where that is safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import ArgumentError
from ..inputs import Inputs
from ..inputs.batches import Batch
from .forward import first_tensor, quiet, run, without_added

_ROWS = 1024  # positions at once: bounds the float32 copy of half-precision logits
_CHUNK = 1 << 26  # logits that are mapped and normalised at once, 268 MB in float32
# Logits that are held together at most, where they can be taken in parts.
AT_ONCE = 2 * _CHUNK
_SHOWN = 64  # tokens of the text that shows what a model does with its vocabulary map's output
_WITNESSES = 3  # rows that are compared number by number
# Largest difference between rows mapped apart and together that rounding explains, relative to the
# largest logit: kernels differ with the number of rows.
_ROUNDING = 1e-4
_HALF_ROUNDING = 5e-2


@dataclass(eq=False)
class LogitRows:
    """Takes the logits of chosen positions out of forward passes.

    Where the first batch shows that the model returns the output of its vocabulary map untouched,
    that map is afterwards given the chosen positions only, which saves most of its cost. Untouched
    means by value: a model that scales or masks its logits in place returns the same tensor.

    Parameters
    ----------
    name
        The model's name in messages.
    head
        Its linear map to the vocabulary, or None if it is not known.
    in_parts
        Whether they are taken by `parts`: then logits too large to be held at once never are.
    """

    name: str
    head: nn.Module | None
    in_parts: bool = False

    def __post_init__(self) -> None:
        self._witness: _Witness | None = None
        self._select: bool | None = None  # None: not known yet
        self._calls = 0
        self._is_own_call = False
        self._hidden: Tensor | None = None

    @classmethod
    def of(cls, model: nn.Module, in_parts: bool = False) -> LogitRows:
        """Return what takes the logits of `model`."""
        path = head_path(model)
        head = None if path is None else model.get_submodule(path)
        return cls(type(model).__name__, head, in_parts)

    def choose(self, batch: Batch, row: np.ndarray, column: np.ndarray) -> None:
        """Begin a batch: positions (row, column) of it are wanted, in this order."""
        self._shape = batch.ids.shape
        self._count = len(row)
        self._index = torch.from_numpy(row * self._shape[1] + column)
        self._selected = False
        self._calls = 0

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Watch the vocabulary map for as long as batches are fed."""
        with ExitStack() as stack:
            if self.head is not None:
                stack.callback(
                    self.head.register_forward_pre_hook(self._before_head).remove
                )
                stack.callback(self.head.register_forward_hook(self._after_head).remove)
            yield

    def _before_head(
        self, _module: nn.Module, args: tuple[Any, ...]
    ) -> tuple[Any, ...] | None:
        if self._is_own_call:
            return None
        self._calls += 1
        hidden = args[0] if args and self._select and self._count else None
        if hidden is None or hidden.shape[:-1] != self._shape:
            return None
        self._selected = True
        rows = hidden.flatten(0, 1).index_select(0, self._index.to(hidden.device))
        if self.in_parts and self.is_large(self._count):
            self._hidden = rows  # mapped in parts when they are taken
            rows = rows[:1]
        return (rows[None], *args[1:])

    def _after_head(self, _module: nn.Module, args: Any, output: Any) -> None:
        if self._is_own_call or self._select is False or not self._count:
            return
        tensors = [
            t for t in (*args[:1], output) if isinstance(t, Tensor) and t.ndim > 1
        ]
        self._witness = _Witness.of(*tensors) if len(tensors) == 2 else None

    def _mapped(self, hidden: Tensor) -> Tensor:
        """Return what the vocabulary map gives for some rows."""
        assert self.head is not None
        self._is_own_call = True
        try:
            return self.head(hidden)
        finally:
            self._is_own_call = False

    def is_large(self, rows: int) -> bool:
        """Return whether the logits of so many positions are too large to be held at once."""
        return rows * getattr(self.head, "out_features", 0) > AT_ONCE

    def learn(self, model: nn.Module, inputs: Inputs) -> bool:
        """Return whether the model returns its vocabulary map's output of a text untouched.

        Else the first batch shows it, and all its logits are held for that.
        """
        longest = int(np.argmax(inputs.lengths))
        ids = inputs.ids[longest][inputs.mask[longest]][None, :_SHOWN]
        batch = Inputs.from_tokens(ids, mask=np.ones(ids.shape, dtype=bool)).batches(1)[
            0
        ]
        self.choose(batch, np.zeros(1, int), np.zeros(1, int))
        with quiet(model), self.attached():
            self.take(run(model, batch))
        return bool(self._select)

    def parts(self, output: Any) -> Iterator[tuple[slice, Tensor]]:
        """End a batch: yield (positions, vocabulary) logits, some positions at once.

        Raises
        ------
        ArgumentError
            If the model's output holds no logits of the right shape.
        """
        logits = self.take(output)
        hidden = self._hidden
        self._hidden = None
        if logits is None:
            return
        # Logits, their log-probabilities and what is made of these are there together.
        chunk = _CHUNK if hidden is None else _CHUNK // 2
        rows = max(1, min(_ROWS, chunk // max(logits.shape[-1], 1)))
        for start in range(0, self._count, rows):
            part = slice(start, min(start + rows, self._count))
            yield part, logits[part] if hidden is None else self._mapped(hidden[part])

    def take(self, output: Any) -> Tensor | None:
        """End a batch: return (positions, vocabulary) logits; None if none was wanted.

        Raises
        ------
        ArgumentError
            If the model's output holds no logits of the right shape.
        """
        witness = self._witness
        self._witness = None
        calls = self._calls
        self._calls = 0
        if not self._count:
            return None
        logits = self._checked(output)
        untouched = witness is not None and calls == 1 and witness.agrees(logits)
        if self._selected and not untouched:
            raise ArgumentError(
                f"{self.name} returns its vocabulary map's output as it is for some texts and "
                "changes it for others, so its logits cannot be read; let its forward return a new "
                "tensor."
            )
        if self._select is None:
            # Only where nothing happens to the map's output: a model that does more to the logits
            # could mix positions, and would then be given the chosen ones alone.
            self._select = (
                untouched and witness is not None and witness.is_given_by(self._mapped)
            )
        if not self._selected:
            logits = logits.flatten(0, 1).index_select(0, self._index.to(logits.device))
        return logits.reshape(-1, logits.shape[-1])

    def _checked(self, output: Any) -> Tensor:
        logits = logits_of(output)
        width = self._count if self._hidden is None else 1
        shape = (1, width) if self._selected else self._shape
        logits = without_added(logits, shape)
        if not isinstance(logits, Tensor) or tuple(logits.shape[:-1]) != tuple(shape):
            raise ArgumentError(
                f"{self.name} must return logits of shape (texts, tokens, vocabulary) = "
                f"({shape[0]}, {shape[1]}, v), as .logits or as its output; got "
                f"{_given(output, logits)}."
            )
        return logits


@dataclass(frozen=True)
class _Witness:
    """What a vocabulary map was given in one call, and what it gave, as it was then.

    Attributes
    ----------
    output
        The very tensor that it gave.
    sums
        Over the vocabulary, of each row.
    hidden, rows
        What it was given for some of the rows, and what it gave.
    """

    output: Tensor
    sums: Tensor
    hidden: Tensor
    rows: Tensor

    @classmethod
    def of(cls, hidden: Tensor, output: Tensor) -> _Witness:
        """Return the witness of a call."""
        place = cls._places(output)
        rows = output.detach().flatten(0, -2)[place].clone()
        hidden = hidden.detach().flatten(0, -2)[place].clone()
        return cls(output, output.detach().sum(-1), hidden, rows)

    @staticmethod
    def _places(output: Tensor) -> list[int]:
        count = output.shape[:-1].numel()
        return sorted({i * (count - 1) // (_WITNESSES - 1) for i in range(_WITNESSES)})

    def agrees(self, logits: Tensor) -> bool:
        """Return whether a model's logits are what the map gave, unchanged since."""
        if logits is not self.output:
            return False
        rows = logits.flatten(0, -2)[self._places(logits)]
        return _equal(rows, self.rows) and _equal(logits.sum(-1), self.sums)

    def is_given_by(self, mapped: Callable[[Tensor], Tensor]) -> bool:
        """Return whether some rows alone are mapped to the same, but for rounding."""
        try:
            apart = mapped(self.hidden).detach()
        except Exception:  # a hook of its own may want whole texts
            return False
        if not bool(torch.isfinite(self.rows).all()):
            return _equal(apart, self.rows)
        allowed = _ROUNDING if self.rows.element_size() >= 4 else _HALF_ROUNDING
        largest = float(self.rows.abs().max())
        return float((apart - self.rows).abs().max()) <= allowed * largest


def _equal(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)


def logits_of(output: Any) -> Any:
    """Return a model output's ``logits``, or the output itself, or its first element."""
    if isinstance(output, Mapping):
        return output.get("logits")
    logits = getattr(output, "logits", None)
    return first_tensor(output) if logits is None else logits


def _given(output: Any, logits: Any) -> str:
    """Return what a model gave instead of logits, in words."""
    if isinstance(logits, Tensor):
        return str(tuple(logits.shape))
    if isinstance(output, Mapping):
        return f"a dict of {', '.join(map(str, output))}"
    return type(logits).__name__


def several_outputs(model: nn.Module, output: Any, shape: Sequence[int]) -> str:
    """Return why the first of several outputs is not taken for logits, empty where it may be.

    That is where it is as wide as no table of token ids, and another one is.
    """
    if isinstance(output, Mapping) or not isinstance(output, Sequence):
        return ""
    widths = [
        t.shape[-1]
        for t in output
        if isinstance(t, Tensor) and tuple(t.shape[:-1]) == tuple(shape)
    ]
    tables = {m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)}
    if (
        len(widths) < 2
        or first_tensor(output).shape[-1] in tables
        or tables.isdisjoint(widths)
    ):
        return ""
    return (
        f"{type(model).__name__} returns several tensors for each token, {_listed(widths)} wide, "
        "and the first is not as wide as its vocabulary: let it return the logits first, or as "
        ".logits."
    )


def _listed(widths: Sequence[int]) -> str:
    return " and ".join(map(str, widths))


def head_path(model: nn.Module) -> str | None:
    """Return the path of the linear map to the vocabulary, where the model names it."""
    find = getattr(model, "get_output_embeddings", None)
    head = find() if callable(find) else None
    if not isinstance(head, nn.Linear):
        return None
    return next(
        (path for path, module in model.named_modules() if module is head), None
    )
