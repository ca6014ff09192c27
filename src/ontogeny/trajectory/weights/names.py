"""Which tensor of a checkpoint file is which parameter of a module.

Names in files can differ from names in modules: transformers renames some on the way
(GPT-NeoX stores ``embed_out.weight`` for ``lm_head.weight``), and of tied tensors only one name is
stored.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from torch import nn

from ...errors import CheckpointError
from .files import state_tensors
from .inert import few
from .transformers_models import is_pretrained, renamed_keys

logger = logging.getLogger("ontogeny.trajectory")


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
    tensors = state_tensors(module)
    inside = _without_wrapper(tensors, sorted(file_names))
    if is_pretrained(module):
        names = {n: inside[name] for n, name in renamed_keys(module, inside).items()}
    else:
        names = inside
    names_by_tensor = {id(t): names[name] for name, t in reversed(tensors.items()) if name in names}
    to_file = {
        name: names.get(name, names_by_tensor.get(id(tensor), ""))
        for name, tensor in tensors.items()
        if name in names or id(tensor) in names_by_tensor
    }
    used = set(to_file.values())
    return NameMap(
        to_file=to_file,
        missing=tuple(name for name in tensors if name not in to_file),
        unexpected=tuple(name for name in inside.values() if name not in used),
    )


def _without_wrapper(names: Collection[str], file_names: list[str]) -> dict[str, str]:
    """Return file names by the names in a module, which may be one part of what was saved.

    Lightning saves the module that a run's own class holds: names then begin with that part's, and
    tensors of other parts, such as the weights of a loss, stand beside them.

    Raises
    ------
    CheckpointError
        If several parts are this module, as with a running average beside the weights.
    """
    counts = Counter(
        name[: -len(inner)]
        for name in file_names
        for inner in _endings(name)
        if inner in names and not name[: -len(inner)][:1].isdecimal()
    )
    most = max(counts.values(), default=0)
    wrappers = [wrapper for wrapper, count in counts.items() if count == most]
    if "" in wrappers or 2 * most < len(names):
        return {name: name for name in file_names}
    if len(wrappers) > 1:
        choices = few([wrapper.rstrip(".") for wrapper in sorted(wrappers)])
        raise CheckpointError(
            f"the checkpoint holds this model several times, under {choices}; choose with --key "
            "(key= in Python)."
        )
    wrapper = wrappers[0]
    inside = {n.removeprefix(wrapper): n for n in file_names if n.startswith(wrapper)}
    if len(inside) < len(file_names):
        others = few([name for name in file_names if not name.startswith(wrapper)])
        logger.warning(
            "beside %s* there are tensors of no part of this model: %s.", wrapper, others
        )
    return inside


def _endings(name: str) -> Iterator[str]:
    """Yield a name and what follows each of its dots."""
    yield name
    while "." in name:
        name = name.partition(".")[2]
        yield name
