"""Pickled weights, as training loops save them; no code in them runs."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import CheckpointError
from .announced import announce
from .inert import Inert, few, module_tensors, plain, read_inert
from .parts import no_key
from .recognised import pointer

# Under which keys training loops save the weights.
STATE_KEYS = ("model", "state_dict", "model_state_dict", "module")
# Under which keys training loops save the step.
STEP_KEYS = ("iter_num", "global_step", "step", "iteration", "iter", "num_updates")
# What torch.compile, FSDP, activation checkpointing and Lightning put into names.
_WRAPPED = re.compile(
    r"(^|\.)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|_forward_module)\."
)
# How often torch's AveragedModel was updated, beside its module.
_AVERAGED = "n_averaged"
_OPTIMISER = re.compile(
    r"(?:^|\.)opt(?:im|imi[sz]ers?|imizer_state(?:_dict)?s?)?(?:\.|$)|(?:^|\.)state\.\d+$"
)


def unpickle(path: Path, key: str | None = None) -> dict[str, Tensor]:
    """Return the tensors of a file by the names of the module; files of zip format are mapped.

    Parameters
    ----------
    path
        The file.
    key
        Under which key the weights stand, as ``"ema"``, or ``"callbacks.ema"`` where keys are
        nested; also the beginning of names. None: one of the usual keys, else the only one.

    Raises
    ------
    CheckpointError
        If the file is damaged, or holds no tensors by name, also not under `key`.
    """
    state = read_pickle(path)
    if isinstance(state, (tuple, list)):  # weights, optimiser, step
        state = dict(enumerate(state))
    if isinstance(state, Inert) and state.state is not None:
        state = dict(module_tensors(state)) or state
    if not isinstance(state, Mapping):
        raise CheckpointError(
            f"{path} holds a {type(state).__name__}, not a state dict."
        )
    if isinstance(state, Inert) and not state:
        raise CheckpointError(
            f"{path} holds an object of the class {state.origin}, whose code is not run. Where you "
            f"trust it: import torch; model = torch.load({path.name!r}, weights_only=False); "
            f"torch.save(model.state_dict(), {path.stem + '_state.pt'!r})"
        )
    places = dict(_places(state))
    tensors = (
        _usual(path, state, places) if key is None else _under(path, state, places, key)
    )
    result = {
        unwrapped(name): value for name, value in tensors.items() if name != _AVERAGED
    }
    if len(result) < len(tensors) - (_AVERAGED in tensors):
        raise CheckpointError(
            f"{path} holds tensors with the same name with and without 'module.' or '_orig_mod.'; "
            "save the state dict of the module itself."
        )
    return result


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
    state = _pickled(path)
    items = dict(state) if isinstance(state, Mapping) else {}
    match items.get("optimizer_history"):
        case [*_, Mapping() as last]:  # of fairseq
            items |= last
    return {
        key: whole
        for key, value in items.items()
        if (whole := _whole(value)) is not None
    }


def held(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Return what a training loop saved beside the weights under some keys, read inertly.

    Raises
    ------
    CheckpointError
        If the file is damaged.
    """
    state = _pickled(path)
    return {
        key: state[key] for key in keys if isinstance(state, Mapping) and key in state
    }


def _pickled(path: Path) -> Any:
    return read_pickle(path) if path.suffix not in (".safetensors", ".gguf") else {}


def _whole(value: Any) -> int | None:
    """Return a whole number of at least 0, also one in a tensor or of NumPy; None of others."""
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    counted = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return int(value) if counted else None


def read_pickle(path: Path) -> Any:
    """Return what torch reads with ``weights_only=True``, and what it refuses inertly.

    Raises
    ------
    CheckpointError
        If the file is damaged, or no file of torch.
    """
    text = f"weights such as {path} are pickled; tensors and numbers are read, no code in them runs."
    announce("pickled", text)
    is_zip = _is_zip(path)
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=is_zip)
    except Exception:  # damaged pickles raise anything
        pass
    try:
        return read_inert(path, is_zip)
    except Exception as error:
        if (why := pointer(path)) is not None:
            raise CheckpointError(f"{path} {why}.") from None
        reason = plain(next(iter(str(error).splitlines()), type(error).__name__))
        raise CheckpointError(
            f"{path} cannot be read as tensors, so nothing of it was loaded ({reason}). It may be "
            "damaged; convert it to safetensors where you trust it."
        ) from None


def _places(state: Any, where: str = "", depth: int = 3) -> Iterator[tuple[str, dict]]:
    """Yield where tensors stand by name, keys joined by dots, with these tensors."""
    if isinstance(state, Inert) and not state:
        state = dict(module_tensors(state))
    if not isinstance(state, Mapping):
        return
    tensors = {
        name: v
        for name, v in state.items()
        if isinstance(v, Tensor) and isinstance(name, str)
    }
    if tensors:
        yield where, tensors
    for key, value in state.items() if depth else ():
        if isinstance(key, (str, int)):
            yield from _places(value, f"{where}.{key}".lstrip("."), depth - 1)


def _usual(
    path: Path, state: Mapping[str, Any], places: Mapping[str, dict]
) -> dict[str, Tensor]:
    """Return the tensors of a state dict, also of one among other things as training loops save it.

    nanoGPT keeps it under ``"model"`` and Lightning under ``"state_dict"``.
    """
    others = [place for place in places if place and not _OPTIMISER.search(place)]
    if len(others) > 1 and all(place.isdecimal() for place in others):
        raise CheckpointError(
            f"{path} holds {len(others)} models, under {few(others)}; save each apart: import torch"
            f"; states = torch.load({path.name!r}); [torch.save(states[n], f'step_{{n}}.pt') for n "
            f"in ({', '.join(others)})]"
        )
    sole = others if len(others) == 1 else []
    for place in (*STATE_KEYS, "", *sole):
        if place in places:
            return places[place]
    for top in (*STATE_KEYS, "params"):  # params: {"head": {"weight": ...}}
        tensors = _nested(state.get(top))
        if tensors and _is_one_model(tensors):
            return tensors
    choose = f"choose with --key {plain(others[0])}; " if others else ""
    raise CheckpointError(
        f"{path} holds no tensors by name, also not under {', '.join(STATE_KEYS)}; {choose}it has "
        f"the keys {few(others or state)}."
    )


def _is_one_model(names: Iterable[str]) -> bool:
    """Return whether no name is that of an optimiser's tensor, or in a state dict beside others."""
    places = {name.rpartition(".")[0] for name in names}
    ends = {place.rpartition(".")[2] for place in places}
    return not any(map(_OPTIMISER.search, places)) and ends.isdisjoint(STATE_KEYS)


def _nested(state: Any, depth: int = 20) -> dict[str, Tensor]:
    """Return the tensors in mappings within mappings, their keys joined by dots."""
    items = state.items() if isinstance(state, Mapping) and depth else ()
    tensors = {str(key): value for key, value in items if isinstance(value, Tensor)}
    for key, value in items:
        tensors |= {f"{key}.{name}": t for name, t in _nested(value, depth - 1).items()}
    return tensors


def _under(
    path: Path, state: Mapping[str, Any], places: Mapping[str, dict], key: str
) -> dict[str, Tensor]:
    """Return the tensors under a key, or those whose names begin with it."""
    if key in places:
        return places[key]
    if tensors := _nested(state.get(key)):
        return tensors
    for tensors in places.values():
        inner = {
            n.removeprefix(f"{key}."): v
            for n, v in tensors.items()
            if n.startswith(f"{key}.")
        }
        if inner:
            return inner
    raise no_key(path, key, [plain(place) for place in places if place])


def unwrapped(name: str) -> str:
    """Return a tensor's name without what wrappers of the module put into it.

    Examples
    --------
    >>> unwrapped("_orig_mod.wte.weight"), unwrapped("module._orig_mod.head.weight")
    ('wte.weight', 'head.weight')
    """
    return _WRAPPED.sub(r"\1", name.removeprefix("module."))


def check_whole_pickle(path: Path) -> None:
    """Refuse a file that an interrupted save left: one without bytes, or a zip without its end.

    Older files of torch are no zip, and end anywhere; what they lack shows when they are read.

    Raises
    ------
    CheckpointError
        If the file is gone or cut off.
    """
    try:
        is_empty = not path.stat().st_size
        is_cut = not is_empty and _is_zip(path) and not zipfile.is_zipfile(path)
    except OSError as error:
        raise CheckpointError(f"{path} is gone: {error.strerror}.") from None
    if is_empty:
        raise CheckpointError(f"{path} has 0 bytes: its save was interrupted.")
    if is_cut:
        raise CheckpointError(f"{path} is cut off: its save was interrupted.")


def _is_zip(path: Path) -> bool:
    """Return whether `path` has torch's zip format, the only one that can be memory-mapped."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04"
