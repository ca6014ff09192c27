"""A transformer that learns which word follows each of a fixed list of contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn

from ontogeny.capture.forward import device_of, quiet
from ontogeny.errors import ArgumentError, check_choice, check_whole
from ontogeny.training.loop import train

if TYPE_CHECKING:
    from transformers import GPT2LMHeadModel

_BATCH = 1024


@dataclass(frozen=True, eq=False)
class ContextTask:
    """Contexts and what is to follow them: a sampler and a loss for `train`.

    Parameters
    ----------
    ids
        Words of each context (m, longest) int64, -1 after its end.
    targets
        (V, m): next-word distributions for ``"cross_entropy"``, the centred support matrix for
        ``"square"``. The V words that may follow are the ids 0 to V − 1.
    loss_kind
        ``"cross_entropy"`` of softmax(logits), or ``"square"``: (1/2) ‖target − logits‖² a context.
    batch_size
        Contexts in a batch, all of one length (drawn in proportion); None takes all each time.

    Raises
    ------
    ArgumentError
        If shapes do not fit, a context is empty, or the targets are no distributions.

    Examples
    --------
    >>> task = ContextTask(np.array([[0, 1], [1, -1]]), np.eye(2))
    >>> task.lengths
    array([2, 1])
    """

    ids: np.ndarray
    targets: np.ndarray
    loss_kind: str = "cross_entropy"
    batch_size: int | None = None

    def __post_init__(self) -> None:
        check_choice("loss_kind", self.loss_kind, ("cross_entropy", "square"))
        if (
            self.ids.ndim != 2
            or self.targets.ndim != 2
            or len(self.ids) != self.targets.shape[1]
        ):
            raise ArgumentError(
                "ids must be (m, longest) and targets (V, m); their shapes are "
                f"{self.ids.shape} and {self.targets.shape}."
            )
        if (self.lengths == 0).any():
            raise ArgumentError(f"context {int(self.lengths.argmin())} has no word.")
        if self.batch_size is not None:
            check_whole("batch_size", self.batch_size)
        sums = self.targets.sum(axis=0)
        if self.loss_kind == "cross_entropy" and (
            (self.targets < 0).any() or np.abs(sums - 1).max() > 1e-4
        ):
            raise ArgumentError(
                "targets must hold probabilities, its columns summing to 1."
            )

    @cached_property
    def lengths(self) -> np.ndarray:
        """(m,) words in each context."""
        return (self.ids >= 0).sum(axis=1)

    @cached_property
    def _of_length(self) -> dict[int, np.ndarray]:
        return {
            int(n): np.flatnonzero(self.lengths == n) for n in np.unique(self.lengths)
        }

    def sample(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Draw a batch: ids (b, length), positions of the last words (b,), targets (b, V)."""
        rows = np.arange(len(self.ids))
        if self.batch_size is not None:
            one = int(torch.randint(len(self.ids), (1,), generator=generator))
            alike = self._of_length[int(self.lengths[one])]
            order = torch.randperm(len(alike), generator=generator)[: self.batch_size]
            rows = alike[order.numpy()]
        return self.batch(rows)

    def batch(self, contexts: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return the batch of chosen contexts."""
        last = self.lengths[contexts] - 1
        ids = np.maximum(self.ids[contexts, : int(last.max()) + 1], 0)
        targets = np.ascontiguousarray(self.targets[:, contexts].T, dtype=np.float32)
        return torch.from_numpy(ids), torch.from_numpy(last), torch.from_numpy(targets)

    def loss(self, model: nn.Module, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the mean loss over the batch."""
        ids, last, targets = batch
        logits = _last_logits(model, ids, last)[:, : targets.shape[1]]
        if self.loss_kind == "square":
            return (logits - targets).square().sum(1).mean() / 2
        return -(targets * logits.log_softmax(1)).sum(1).mean()

    def logits(self, model: nn.Module) -> np.ndarray:
        """Return the logits after every context, (V, m) float32, in evaluation mode."""
        V = len(self.targets)
        return self._of_contexts(lambda *of: _last_logits(model, *of)[:, :V], model)

    def states(self, model: nn.Module) -> np.ndarray:
        """Return what the vocabulary map is given after every context, (width, m) float32."""
        return self._of_contexts(lambda *of: _last_states(model, *of), model)

    def _of_contexts(
        self, read: Callable[[Tensor, Tensor], Tensor], model: nn.Module
    ) -> np.ndarray:
        """Return what `read` gives of ids and last positions, one column a context."""
        device = device_of(model)
        batches = []
        columns = []
        with quiet(model):
            for alike in self._of_length.values():
                for start in range(0, len(alike), _BATCH):
                    batches.append(alike[start : start + _BATCH])
                    ids, last, _ = self.batch(batches[-1])
                    columns.append(
                        read(ids.to(device), last.to(device)).float().cpu().numpy()
                    )
        return np.concatenate(columns)[np.argsort(np.concatenate(batches))].T


def context_model(
    words: int,
    longest: int,
    *,
    width: int = 128,
    layers: int = 2,
    heads: int = 4,
    random_state: int = 0,
) -> GPT2LMHeadModel:
    """Return a small GPT-2 without dropout whose decoder is not tied to its input embedding.

    Parameters
    ----------
    words
        Size of the vocabulary.
    longest
        Longest context.
    width, layers, heads
        Hidden units, blocks, attention heads.
    random_state
        Seed of the weights; PyTorch's own random state is left as it was.

    Raises
    ------
    ArgumentError
        If a size is below 1 or `width` is no multiple of `heads`.

    Examples
    --------
    >>> context_model(10, 4, width=8, layers=1).lm_head.weight.shape
    torch.Size([10, 8])
    """
    sizes = {
        "words": words,
        "longest": longest,
        "width": width,
        "layers": layers,
        "heads": heads,
    }
    for name, size in sizes.items():
        check_whole(name, size)
    check_whole("random_state", random_state, 0)
    if width % heads:
        raise ArgumentError(f"width must be a multiple of heads={heads}; got {width}.")
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=words,
        n_positions=longest,
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(random_state)
        return GPT2LMHeadModel(config)


def spaced_steps(last: int, count: int) -> list[int]:
    """Return 0 and about `count` steps up to `last`, evenly spaced in their logarithm.

    Examples
    --------
    >>> spaced_steps(100, 3)
    [0, 1, 10, 100]
    """
    return [0, *np.unique(np.geomspace(1, last, count).round().astype(int)).tolist()]


def record_logits(
    model: nn.Module,
    task: Any,
    steps: int,
    *,
    at: Iterable[int],
    learning_rate: float = 1e-3,
    measure: Callable[[np.ndarray], xr.Dataset] | None = None,
    random_state: int = 0,
) -> xr.Dataset:
    """Train `model` in place with Adam and record its logits along the way.

    Parameters
    ----------
    model, task
        What is trained, and a task with ``sample``, ``loss`` and ``logits`` (a `ContextTask`).
    steps
        Number of updates.
    at
        Steps recorded, in 0 to `steps`; the last is always among them.
    learning_rate
        Of Adam, constant.
    measure
        Turns the logits (V, m) of one step into what is kept of them; by default all are kept.
    random_state
        Seed of the batches.

    Returns
    -------
    xarray.Dataset
        What `measure` returned, along ``step``; by default ``logits(step, word, context)``.

    Raises
    ------
    ArgumentError
        If a step in `at` is out of range.
    NonFiniteError
        If the training diverges.

    Examples
    --------
    >>> task = ContextTask(np.array([[0, 1], [1, 0]]), np.eye(2))
    >>> model = context_model(2, 2, width=8, layers=1)
    >>> record_logits(model, task, 4, at=[0, 2]).step.values
    array([0, 2, 4])
    """
    at_steps = sorted({int(s) for s in at} | {steps})
    if at_steps[0] < 0 or at_steps[-1] > steps:
        raise ArgumentError(
            f"at must lie in 0 to {steps}; got {at_steps[0]} to {at_steps[-1]}."
        )
    keep = _as_logits if measure is None else measure
    pieces: list[xr.Dataset] = []

    def record(step: int, current: nn.Module) -> None:
        if step in at_steps:
            pieces.append(keep(task.logits(current)))

    log = train(
        model,
        task.sample,
        task.loss,
        steps,
        optimizer=torch.optim.Adam(model.parameters(), lr=learning_rate),
        on_step=[record],
        random_state=random_state,
        clip=float("inf"),
    )
    data = xr.concat(pieces, dim=xr.Variable("step", np.array(at_steps)))
    return data.assign(batch_loss=("update", log.loss)).assign_coords(update=log.step)


def _as_logits(logits: np.ndarray) -> xr.Dataset:
    return xr.Dataset({"logits": (("word", "context"), logits)})


def _last_logits(model: nn.Module, ids: Tensor, last: Tensor) -> Tensor:
    return model.lm_head(_last_states(model, ids, last))  # type: ignore[operator]


def _last_states(model: nn.Module, ids: Tensor, last: Tensor) -> Tensor:
    """Return the states after each context's last word; a causal model sees no padding before."""
    hidden = model.transformer(ids, use_cache=False).last_hidden_state  # type: ignore[operator]
    return hidden[torch.arange(len(ids), device=ids.device), last]
