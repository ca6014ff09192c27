"""Which tensor of a checkpoint file is which parameter of a module.

Names in files can differ from names in modules: transformers renames some on the way
(GPT-NeoX stores ``embed_out.weight`` for ``lm_head.weight``), and of tied tensors only one name is
stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import nn

from .files import state_tensors
from .transformers_models import is_pretrained, renamed_keys


@dataclass(frozen=True)
class NameMap:
    """Module names to file names, and what has no partner on the other side."""

    to_file: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


def map_names(module: nn.Module, file_names: Iterable[str]) -> NameMap:
    """Return which of `file_names` holds each parameter and persistent buffer of `module`.

    Tied tensors are recognised by identity: where one name of a tied group is stored, all names
    of the group map to it.

    Examples
    --------
    >>> map_names(nn.Linear(2, 2), ["weight", "extra"])
    NameMap(to_file={'weight': 'weight'}, missing=('bias',), unexpected=('extra',))
    """
    file_names = sorted(file_names)
    tensors = state_tensors(module)
    if is_pretrained(module):
        own = renamed_keys(module, file_names)
    else:
        own = _without_wrapper(tensors, file_names)
    stored = {id(t): own[name] for name, t in reversed(tensors.items()) if name in own}
    to_file = {
        name: own.get(name, stored.get(id(tensor), ""))
        for name, tensor in tensors.items()
        if name in own or id(tensor) in stored
    }
    used = set(to_file.values())
    return NameMap(
        to_file=to_file,
        missing=tuple(name for name in tensors if name not in to_file),
        unexpected=tuple(name for name in file_names if name not in used),
    )


def _without_wrapper(names: Iterable[str], file_names: list[str]) -> dict[str, str]:
    """Return file names by the names in a module, which may be one part of what was saved.

    Lightning saves the module that a run's own class holds: all names then begin with that part's.
    """
    wrapper = f"{file_names[0].partition('.')[0]}." if file_names else ""
    inside = all(name.startswith(wrapper) for name in file_names)
    if inside and not any(name.startswith(wrapper) for name in names):
        return {name.removeprefix(wrapper): name for name in file_names}
    return {name: name for name in file_names}
