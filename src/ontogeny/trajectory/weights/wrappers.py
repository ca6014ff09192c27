"""Names of a module's tensors in files that were saved of something around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from ...errors import CheckpointError
from .announced import announce
from .inert import few
from .pickled import unwrapped


def without_wrapper(
    names: Collection[str], file_names: list[str], path: Path | None
) -> dict[str, str]:
    """Return file names by the names in a module, which may be one part of what was saved.

    Lightning saves the module that a run's own class holds: names then begin with that part's, and
    tensors of other parts, such as the weights of a loss, stand beside them. What torch.compile
    and FSDP put into names is taken away as well. Other tensors are announced once of the run that
    `path`, the checkpoint's, lies in.

    Raises
    ------
    CheckpointError
        If several parts are this module, as with a running average beside the weights.
    """
    stored = {name if name in names else unwrapped(name): name for name in file_names}
    if len(stored) < len(file_names):  # with a wrapper and without: both are there
        stored = {name: name for name in file_names}
    counts = Counter[str]()
    for name in stored:
        for inner in _endings(name):
            wrapper = name[: -len(inner)]
            if inner in names and not wrapper[:1].isdecimal():
                counts[wrapper] += 1
    most = max(counts.values(), default=0)
    wrappers = [wrapper for wrapper, count in counts.items() if count == most]
    if "" in wrappers or 2 * most < len(names):
        return stored
    if len(wrappers) > 1:
        choices = few([wrapper.rstrip(".") for wrapper in sorted(wrappers)])
        raise CheckpointError(
            f"the checkpoint holds this model several times, under {choices}; choose with --key "
            "(key= in Python)."
        )
    wrapper = wrappers[0]
    inside = {
        n.removeprefix(wrapper): f for n, f in stored.items() if n.startswith(wrapper)
    }
    if len(inside) < len(stored):
        others = few([name for name in stored if not name.startswith(wrapper)])
        text = (
            f"beside {wrapper}* there are tensors of no part of this model: {others}."
        )
        announce(text, text, path)
    return inside


def _endings(name: str) -> Iterator[str]:
    """Yield a name and what follows each of its dots."""
    yield name
    while "." in name:
        name = name.partition(".")[2]
        yield name
