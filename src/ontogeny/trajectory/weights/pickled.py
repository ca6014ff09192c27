"""Pickled weights, as training loops save them; no code in them runs."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError
from .inert import Inert, few, module_tensors, plain, read_inert

logger = logging.getLogger("ontogeny.trajectory")

_STATE_KEYS = ("model", "state_dict", "model_state_dict", "module")
STEP_KEYS = ("iter_num", "global_step", "step", "iteration", "iter")
"""Under which keys training loops save the step."""
_COMPILED = re.compile(r"(^|\.)_orig_mod\.")


def unpickle(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by the names of the module; files of zip format are mapped.

    Raises
    ------
    CheckpointError
        If the file is damaged, or holds no tensors by name.
    """
    state = _loaded(path)
    if isinstance(state, Inert) and state.state is not None:
        state = dict(module_tensors(state)) or state
    if not isinstance(state, Mapping):
        raise CheckpointError(f"{path} holds a {type(state).__name__}, not a state dict.")
    if isinstance(state, Inert) and not state:
        raise CheckpointError(
            f"{path} holds an object of the class {state.origin}, whose code is not run. Where you "
            f"trust it: import torch; model = torch.load({path.name!r}, weights_only=False); "
            f"torch.save(model.state_dict(), {path.stem + '_state.pt'!r})"
        )
    tensors = _tensors(path, state)
    found = {unwrapped(name): value for name, value in tensors.items()}
    if len(found) < len(tensors):
        raise CheckpointError(
            f"{path} holds tensors with the same name with and without 'module.' or '_orig_mod.'; "
            "save the state dict of the module itself."
        )
    return found


def held_numbers(path: Path) -> dict[str, int]:
    """Return the whole numbers that a training loop saved beside the weights, by their keys.

    nanoGPT keeps the step under ``"iter_num"``, Lightning under ``"global_step"``.

    Raises
    ------
    CheckpointError
        If the file is damaged.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ckpt.pt"
    >>> torch.save({"model": {"w": torch.ones(2)}, "iter_num": 500}, path)
    >>> held_numbers(path)
    {'iter_num': 500}
    """
    state = _loaded(path)
    items = state.items() if isinstance(state, Mapping) else ()
    return {key: whole for key, value in items if (whole := _whole(value)) is not None}


def held(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Return what a training loop saved beside the weights under some keys, read inertly.

    Raises
    ------
    CheckpointError
        If the file is damaged.
    """
    state = _loaded(path) if path.suffix != ".safetensors" else {}
    return {key: state[key] for key in keys if isinstance(state, Mapping) and key in state}


def _whole(value: Any) -> int | None:
    """Return a whole number of at least 0, also one in a tensor or of NumPy; None of others."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    counted = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if counted else None


def _loaded(path: Path) -> Any:
    """Return what torch reads with ``weights_only=True``, and what it refuses inertly."""
    _announce_pickle(path.parent)
    is_zip = _is_zip(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception:  # damaged pickles raise anything
        pass
    try:
        return read_inert(path, is_zip)
    except Exception as error:
        reason = plain(next(iter(str(error).splitlines()), type(error).__name__))
        raise CheckpointError(
            f"{path} cannot be read as tensors, so nothing of it was loaded ({reason}). It may be "
            "damaged; convert it to safetensors where you trust it."
        ) from None


def _tensors(path: Path, state: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the tensors of a state dict, also of one among other things as training loops save it.

    nanoGPT keeps it under ``"model"`` and Lightning under ``"state_dict"``.
    """
    for key in _STATE_KEYS:
        inner = state.get(key)
        if isinstance(inner, Inert) and not inner:
            inner = dict(module_tensors(inner))
        if isinstance(inner, Mapping) and any(isinstance(v, Tensor) for v in inner.values()):
            state = inner
            break
    found = {name: value for name, value in state.items() if _is_named(name, value)}
    if not found:
        raise CheckpointError(
            f"{path} holds no tensors by name, also not under {', '.join(_STATE_KEYS)}; it has the "
            f"keys {few(state)}."
        )
    return found


def _is_named(name: Any, value: Any) -> bool:
    return isinstance(name, str) and isinstance(value, Tensor)


def unwrapped(name: str) -> str:
    """Return a tensor's name without what torch.compile and data parallelism put into it.

    Examples
    --------
    >>> unwrapped("_orig_mod.wte.weight"), unwrapped("module._orig_mod.head.weight")
    ('wte.weight', 'head.weight')
    """
    return _COMPILED.sub(r"\1", name.removeprefix("module."))


def _is_zip(path: Path) -> bool:
    """Return whether `path` has torch's zip format, the only one that can be memory-mapped."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"


@functools.lru_cache(maxsize=4096)
def _announce_pickle(folder: Path) -> None:
    logger.warning(
        "weights in %s are pickled; tensors and numbers are read, no code in them runs.",
        folder,
    )
