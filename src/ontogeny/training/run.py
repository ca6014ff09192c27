"""A whole small training run, from texts to a folder of checkpoints to study."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, check_choice, check_known, check_whole
from ..recording import Recorder
from ..tasks import python_documentation, split_texts, train_tokenizer
from ..trajectory.schedule import log_steps
from .causal import CausalLanguageModelling, causal_language_modelling
from .loop import Progress, TrainingLog, adamw_one_cycle, train
from .masked import MaskedLanguageModelling, masked_language_modelling
from .models import causal_model, demo_model

_ARCHITECTURES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "eurobert": (masked_language_modelling, demo_model),
    "gpt-neox": (causal_language_modelling, causal_model),
}


@dataclass(frozen=True)
class RunSettings:
    """Sizes of a run of `record_training_run`.

    Parameters
    ----------
    steps
        Updates.
    tokens_per_step, length
        Tokens in a batch, and in each of its crops.
    vocab_size
        Largest size of the tokenizer.
    layers, width
        Blocks and hidden units of the model.
    learning_rate
        Peak of the one-cycle schedule.
    heldout
        Share of the texts that is kept for the study and never trained on.
    workers
        Threads that share a batch. The weights depend on it in their last digits, and not on how
        many threads the machine has.
    architecture
        ``"eurobert"`` learns to fill masked gaps (`demo_model`), ``"gpt-neox"`` to predict the
        next token (`causal_model`).
    checkpoints
        At most so many are recorded, at least 4.
    """

    steps: int = 1000
    tokens_per_step: int = 2048
    length: int = 64
    vocab_size: int = 4096
    layers: int = 6
    width: int = 128
    learning_rate: float = 2e-3
    heldout: float = 0.05
    workers: int = 2
    architecture: str = "eurobert"
    checkpoints: int = 32

    @classmethod
    def quick(cls) -> RunSettings:
        """Return a setting for automatic checks: a smaller model, in under half a minute."""
        return cls(
            steps=450,
            length=32,
            tokens_per_step=1024,
            vocab_size=2048,
            layers=3,
            width=64,
            learning_rate=4e-3,
        )


def record_training_run(
    folder: str | PathLike[str],
    texts: Sequence[str] | None = None,
    *,
    quick: bool = False,
    random_state: int = 0,
    device: str = "cpu",
    progress: Progress | None = None,
    **changes: Any,
) -> Path:
    """Train a tokenizer and a small EuroBERT or GPT-NeoX and record checkpoints of the run.

    The folder then holds what a study needs: checkpoints from step 0 to the last (about 32, dense
    early, evenly spaced late) with the tokenizer, ``heldout.jsonl`` (texts that were never trained
    on, one JSON string a line) and ``training_log.json`` (``step``, ``loss`` and ``learning_rate``
    of every update; ``unigram_entropy`` of the training text in nats, the loss without any
    context; ``settings``; ``random_state``). The same texts, settings and seed give the same
    weights.

    Parameters
    ----------
    folder
        A new or empty folder.
    texts
        At least two; `python_documentation` by default.
    quick
        Start from ``RunSettings.quick()`` instead of ``RunSettings()``.
    random_state
        Seed of the weights, the batches and the masks. Which texts are held out does not depend
        on it, so that runs of several seeds can be compared.
    device
        Where to train.
    progress
        Called after each update as ``progress(step, steps, loss)``.
    **changes
        Fields of `RunSettings`, such as ``steps=300``.

    Returns
    -------
    pathlib.Path
        The folder, for ``Trajectory.from_folder``.

    Raises
    ------
    ArgumentError
        If the folder is not empty, a setting is unknown or out of range, or `texts` is too short.
    NonFiniteError
        If the training diverges.

    Examples
    --------
    >>> import tempfile
    >>> folder = record_training_run(
    ...     tempfile.mkdtemp(),
    ...     [f"some words about number {i} in particular" for i in range(40)],
    ...     steps=4,
    ...     tokens_per_step=64,
    ...     length=16,
    ...     vocab_size=261,
    ...     layers=1,
    ...     width=16,
    ... )
    >>> (folder / "heldout.jsonl").is_file(), (folder / "training_log.json").is_file()
    (True, True)
    """
    return record(
        folder, texts, _settings(quick, changes), random_state, device, progress
    )


def record(
    folder: str | PathLike[str],
    texts: Sequence[str] | None,
    settings: RunSettings,
    random_state: int,
    device: str = "cpu",
    progress: Progress | None = None,
    scrambled: tuple[str, int] | None = None,
    every: Sequence[int] | None = None,
) -> Path:
    """Record a run, on `texts` or on their tokens ``scrambled`` by a kind and a seed."""
    folder = Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise ArgumentError(f"folder {str(folder)!r} is not empty; name a new one.")
    train_texts, heldout = split_texts(
        python_documentation() if texts is None else texts, settings.heldout
    )
    tokenizer = train_tokenizer(train_texts, settings.vocab_size)
    make_task, make_model = _ARCHITECTURES[settings.architecture]
    task = make_task(
        train_texts,
        tokenizer,
        length=settings.length,
        tokens_per_step=settings.tokens_per_step,
    )
    if scrambled is not None:
        task = task.scrambled(*scrambled, tokenizer)
    model = make_model(
        tokenizer,
        layers=settings.layers,
        width=settings.width,
        random_state=random_state,
    )
    optimizer, schedule = adamw_one_cycle(
        model, settings.steps, peak=settings.learning_rate
    )
    if every is None:
        every = log_steps(settings.steps, settings.checkpoints)
    recorder = Recorder(folder, every=every, total=settings.steps, tokenizer=tokenizer)
    log = train(
        model,
        task.sample,
        task.loss,
        settings.steps,
        optimizer=optimizer,
        schedule=schedule,
        on_step=[recorder],
        device=device,
        random_state=random_state,
        progress=progress,
        workers=settings.workers if str(device).startswith("cpu") else 1,
    )
    recorder.finish(settings.steps, model)
    more: dict[str, Any] = {"random_state": random_state}
    if scrambled is not None:
        more["scrambled"] = dict(zip(("kind", "random_state"), scrambled, strict=True))
    _write(folder, heldout, log, task, settings, more)
    return folder


def _settings(quick: bool, changes: dict[str, Any]) -> RunSettings:
    names = [field.name for field in fields(RunSettings)]
    check_known("a training run", "setting", changes, names)
    settings = replace(RunSettings.quick() if quick else RunSettings(), **changes)
    check_choice("architecture", settings.architecture, _ARCHITECTURES)
    check_whole("checkpoints", settings.checkpoints, 4)
    return settings


def _write(
    folder: Path,
    heldout: Sequence[str],
    log: TrainingLog,
    task: MaskedLanguageModelling | CausalLanguageModelling,
    settings: RunSettings,
    more: dict[str, Any],
) -> None:
    # JSON strings, because a text may hold line breaks.
    lines = "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in heldout)
    (folder / "heldout.jsonl").write_text(lines, encoding="utf-8")
    record = {
        **log.to_dict(),
        "unigram_entropy": task.unigram_entropy,
        "settings": asdict(settings),
        **more,
    }
    (folder / "training_log.json").write_text(json.dumps(record), encoding="utf-8")
