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
    own = renamed_keys(module, file_names) if is_pretrained(module) else _identity(file_names)
    tensors = state_tensors(module)
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


def _identity(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}
