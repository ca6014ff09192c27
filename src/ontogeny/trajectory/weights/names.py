"""Which tensor of a checkpoint file is which parameter of a module.

Names in files can differ from names in modules: transformers renames some on the way
(GPT-NeoX stores ``embed_out.weight`` for ``lm_head.weight``), and of tied tensors only one name is
stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from .files import state_tensors
from .transformers_models import is_pretrained, renamed_keys
from .wrappers import without_wrapper


@dataclass(frozen=True)
class NameMap:
    """Module names to file names, and what has no partner on the other side."""

    to_file: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]


def map_names(
    module: nn.Module, file_names: Iterable[str], path: Path | None = None
) -> NameMap:
    """Return which of `file_names` holds each parameter and persistent buffer of `module`.

    Tied tensors are recognised by identity: where one name of a tied group is stored, all names
    of the group map to it. `path` is the checkpoint's, by which tensors beside the model are
    announced once of each run.

    Examples
    --------
    >>> map_names(nn.Linear(2, 2), ["weight", "extra"])
    NameMap(to_file={'weight': 'weight'}, missing=('bias',), unexpected=('extra',))
    """
    tensors = state_tensors(module)
    inside = without_wrapper(tensors, sorted(file_names), path)
    renamed = (
        renamed_keys(module, inside)
        if is_pretrained(module)
        else {n: n for n in inside}
    )
    names = {n: inside[name] for n, name in renamed.items()}
    names_by_tensor = {
        id(t): names[name] for name, t in reversed(tensors.items()) if name in names
    }
    to_file = {
        name: names.get(name, names_by_tensor.get(id(tensor), ""))
        for name, tensor in tensors.items()
        if name in names or id(tensor) in names_by_tensor
    }
    used = set(to_file.values())
    missing = tuple(name for name in tensors if name not in to_file)
    return NameMap(to_file, missing, tuple(n for n in inside.values() if n not in used))
