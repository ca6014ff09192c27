"""Recorded training on the marker task: the settings that learn, and those of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ontogeny.errors import ArgumentError, check_whole
from ontogeny.training.loop import Progress

from ..tasks import MarkerBatch, MarkerStream, MarkerTask
from .seeds import train_seeds
from .stacked import OptimizerSettings

if TYPE_CHECKING:
    from .readout_model import ReadoutTransformer


@dataclass(frozen=True)
class MarkerRun:
    """One setting of a training on the marker task; the default solves m = 1 to 4.

    Parameters
    ----------
    task
        `ontogeny_papers.reproduce.tasks.MarkerTask`.
    layers, width, heads, mlp
        Sizes of the `ReadoutTransformer`.
    steps, batch_size
        Updates, and examples of each.
    curriculum
        Whether the numbers of markers come one after the other, equally long, instead of mixed.
    optimizer
        `OptimizerSettings`: AdamW at 1e-3 with cosine decay by default.

    Examples
    --------
    >>> MarkerRun().steps, MarkerRun.demo().layers
    (8000, 2)
    """

    task: MarkerTask = field(default_factory=MarkerTask)
    layers: int = 4
    width: int = 128
    heads: int = 4
    mlp: bool = False
    steps: int = 8000
    batch_size: int = 64
    curriculum: bool = False
    optimizer: OptimizerSettings = field(default_factory=OptimizerSettings)

    def __post_init__(self) -> None:
        for name in ("layers", "width", "heads", "steps", "batch_size"):
            check_whole(name, getattr(self, name))
        if self.width % self.heads:
            raise ArgumentError(
                f"width must be a multiple of heads; got {self.width} and {self.heads}."
            )
        if self.curriculum and self.steps < len(self.task.counts):
            raise ArgumentError(
                f"a curriculum of {len(self.task.counts)} stages needs as many steps; "
                f"got {self.steps}."
            )

    @classmethod
    def demo(cls) -> MarkerRun:
        """Return the setting that is solved within seconds: 2 layers, m = 1 and 2."""
        return cls(
            task=MarkerTask(markers=(1, 2)),
            layers=2,
            steps=500,
            optimizer=OptimizerSettings(learning_rate=2e-3),
        )

    @classmethod
    def paper(cls) -> MarkerRun:
        """Return what the paper states: T = 32, 2 layers, SGD at 0.001. It does not learn.

        The paper names neither depth nor vocabulary here; 2 layers and 64 tokens are ours.
        """
        return cls(
            task=MarkerTask(length=32, vocab_size=64, distinct_markers=True),
            layers=2,
            steps=20_000,
            optimizer=OptimizerSettings("sgd", 1e-3, "constant"),
        )

    def model(self) -> ReadoutTransformer:
        """Return an untrained model, from PyTorch's random state."""
        # Transformers takes seconds.
        from .readout_model import ReadoutConfig, ReadoutTransformer

        return ReadoutTransformer(
            ReadoutConfig(
                vocab_size=self.task.vocab_size,
                hidden_size=self.width,
                num_hidden_layers=self.layers,
                num_attention_heads=self.heads,
                max_position_embeddings=self.task.length,
                use_mlp=self.mlp,
                num_labels=self.task.modulus,
                attn_implementation="eager",
            )
        )

    def stages(self) -> list[tuple[int, int]]:
        """Return the curriculum's ``(steps, m)``; empty where training is mixed."""
        counts = self.task.counts
        if not self.curriculum:
            return []
        return [(self.steps // len(counts), m) for m in counts]

    def batches(self, seed: int, device: str | torch.device = "cpu") -> MarkerStream:
        """Return the training batches of one seed."""
        return MarkerStream(
            self.task, self.batch_size, seed, curriculum=self.stages(), device=device
        )


def readout_loss(model: nn.Module, batch: MarkerBatch) -> Tensor:
    """Return the mean cross-entropy of the answers, computing the last block where it is read.

    Examples
    --------
    >>> run = MarkerRun.demo()
    >>> readout_loss(run.model(), run.batches(0)(0)).ndim
    0
    """
    return cross_entropy(model(batch.ids, readout_only=True).logits, batch.labels)


def record_marker_runs(
    folder: str | PathLike[str],
    run: MarkerRun | None = None,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    every: int | Sequence[int] = 100,
    vectorise: bool | None = None,
    device: str | torch.device = "cpu",
    progress: Progress | None = None,
) -> list[Path]:
    """Train `run` once for each seed and record the checkpoints; a stopped run goes on.

    The seed governs weights and batches. See `train_seeds` for folders and options.

    Returns
    -------
    list of pathlib.Path
        Folders for ``Trajectory.from_folder``, in the order of `seeds`.

    Raises
    ------
    ArgumentError, NonFiniteError
        As `train_seeds`.

    Examples
    --------
    >>> import tempfile
    >>> from dataclasses import replace
    >>> tiny = replace(MarkerRun.demo(), steps=3, width=8, batch_size=4)
    >>> [path.name for path in record_marker_runs(tempfile.mkdtemp(), tiny, seeds=[5])]
    ['seed-5']
    """
    settings = run or MarkerRun()
    return train_seeds(
        folder,
        lambda seed: settings.model(),
        lambda seed: settings.batches(seed, device),
        readout_loss,
        settings.steps,
        seeds=seeds,
        optimizer=settings.optimizer,
        every=every,
        vectorise=vectorise,
        device=device,
        settings={"run": asdict(settings)},
        progress=progress,
    )
