"""The demo: train a small language model, record it, study it, and write its page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .errors import ArgumentError
from .study import Progress, read_study
from .study.progress import Silent
from .study.results.page import write_page
from .tasks.bundled import bundled_texts
from .whole_files import write_whole

_WORKERS = 2
# The whole demo is to take five minutes on two cores.
_RUN: dict[str, Any] = {
    "architecture": "gpt-neox",
    "steps": 700,
    "layers": 4,
    "vocab_size": 2048,
    "learning_rate": 3e-3,
    "heldout": 0.12,
}
_QUICK_RUN: dict[str, Any] = {"architecture": "gpt-neox"}
_FULL: dict[str, Any] = {
    "texts": 400,
    "tokens": 3000,
    "concepts": 20,
    "described": '["gpt_neox.layers[1]", "gpt_neox.layers[2]"]',
    "components": 40,
    "learned_tokens": 20_000,
    "controls": 3,
    "control_steps": 6,
}
_QUICK = _FULL | {
    "texts": 60,
    "tokens": 600,
    "concepts": 8,
    "described": '["gpt_neox.layers[1]"]',
    "components": 20,
    "learned_tokens": 2000,
    "controls": 4,
    "control_steps": 3,
}


def run_demo(
    folder: str | Path,
    *,
    quick: bool = False,
    progress: Progress | None = None,
    training: Callable[[int, int, float], None] | None = None,
) -> Path:
    """Train, record, audit, study and report in `folder`; return the path of the page.

    The folder then holds ``run`` (checkpoints), ``study.toml`` (what is studied; change it and run
    ``ontogeny run`` on it), ``study`` (result) and ``report.html``. Called again, it goes on where
    it was; a training that was stopped begins anew.

    Raises
    ------
    ArgumentError
        If `folder` holds other files.
    """
    root = Path(folder)
    progress = progress or Silent()
    _check_folder(root)
    if (root / "run").is_dir():
        _check_size(root, quick)
    else:
        _train(root, quick, progress, training)
    study_file = root / "study.toml"
    if not study_file.exists():
        title = "How a small GPT-NeoX learns Moby-Dick"
        template = (
            Path(__file__).with_name("demo-study.toml").read_text(encoding="utf-8")
        )
        text = template.format(title=title, **(_QUICK if quick else _FULL))
        write_whole(study_file, text.encode())
    study = read_study(study_file)
    progress.note(f"audit: {study.trajectory.audit()}")
    with ThreadPoolExecutor(_WORKERS) as executor:
        study.run(root / "study", executor, progress)
    return write_page(root / "study", root / "report.html")


def _check_folder(root: Path) -> None:
    ours = {"run", "study.toml", "study", "report.html", _PARTIAL}
    present = {p.name for p in root.iterdir()} if root.is_dir() else set()
    others = {name for name in present - ours if not name.startswith(".")}
    if others or (root.exists() and not root.is_dir()):
        raise ArgumentError(
            f"{root} holds other files ({', '.join(sorted(others)[:3]) or 'it is a file'}); "
            "give a new folder with --output."
        )


def _check_size(root: Path, quick: bool) -> None:
    from .training import RunSettings

    log = json.loads((root / "run" / "training_log.json").read_text(encoding="utf-8"))
    start = RunSettings.quick() if quick else RunSettings()
    if log["settings"] != asdict(replace(start, **(_QUICK_RUN if quick else _RUN))):
        raise ArgumentError(
            f"{root} holds a demo of other settings ({log['settings']['steps']} steps); "
            "give a new folder with --output."
        )


def _train(
    root: Path,
    quick: bool,
    progress: Progress,
    training: Callable[[int, int, float], None] | None,
) -> None:
    from .training import record_training_run

    progress.note("training a small model on Moby-Dick")
    partial = root / _PARTIAL
    shutil.rmtree(partial, ignore_errors=True)
    record_training_run(
        partial,
        bundled_texts("moby-dick"),
        quick=quick,
        progress=training,
        **(_QUICK_RUN if quick else _RUN),
    )
    partial.rename(root / "run")


_PARTIAL = ".run.partial"
