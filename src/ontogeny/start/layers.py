"""Which layers of a model are proposed: by names, among the modules that a trial pass shows to fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from torch import Tensor, nn

from .. import capture
from ..capture.forward import first_tensor, quiet, run, without_added
from ..capture.sites import watched
from ..capture.trial.first_look import batch_of
from ..errors import ArgumentError
from ..inputs import Inputs
from ..words.formats import plural

_MLP = re.compile(
    r"(?P<blocks>(?:.*\.)?)(?P<number>\d+)\.(?P<name>mlp|ffn|ff|feed_?forward)"
)
_ONE_MLP = re.compile(r"(?P<blocks>(?:.*\.)?)(?P<name>mlp|ffn|ff|feed_?forward)")
_NUMBERED = re.compile(r"(?P<blocks>(?:.*\.)?)(?P<number>\d+)")
_COPIES = 2  # of a text; one more where it has as many tokens


@dataclass(frozen=True)
class ProposedLayers:
    """The layers of a model that are proposed.

    Attributes
    ----------
    layers
        A pattern for each, in order.
    every
        What means all of them: one pattern where there is one, else each of them.
    group
        The pattern of their names, which others may match too; empty where they have none.
    width
        Columns of the narrowest.
    why_none
        Why there is none; empty if there are any.
    tokens_first
        Whether a module gives (tokens, texts, features).
    blocks
        A pattern for what the stream holds after each block, in order; empty where that is unknown.
    """

    layers: tuple[str, ...] = ()
    every: str | tuple[str, ...] = ()
    group: str = ""
    width: int = 1
    why_none: str = ""
    tokens_first: bool = False
    blocks: tuple[str, ...] = ()


@dataclass
class _Calls:
    """What one module gave in a pass: the shapes at each call, and whether all of them fit."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)
    fit: bool = True
    tokens_first: bool = False


def proposed_layers(model: nn.Module, text: Inputs) -> ProposedLayers:
    """Return what each block's MLP gives, in order; of the blocks where no MLP is found.

    The longest of the texts is run: only a module that gives (texts, tokens, features) whenever it is
    called is a layer. One that is called for each token, or gives something else, is none.

    Examples
    --------
    >>> model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 3))
    >>> proposed_layers(model, Inputs.from_tokens([[1, 2, 3, 4]])).layers
    ('0', '1')
    """
    calls = _calls(model, text)
    fitting = {path: of for path, of in calls.items() if of.fit}
    if capture.family_of(model) is not None:
        paths = capture.match_layers(model, "mlp")
        blocks = tuple(f"layers[{n}]" for n in range(len(paths)))
        layers = tuple(f"{block}.mlp" for block in blocks)
        width = min(calls[path].shapes[0][-1] for path in paths if path in calls)
        return ProposedLayers(layers, "mlp", "mlp", width, blocks=blocks)
    if not fitting:
        return ProposedLayers(why_none=_why_none(model, calls))
    paths, group = _by_names(fitting)
    shared = any(len(fitting[path].shapes) > 1 for path in paths)
    if shared and _is_half(paths[0], fitting):
        paths = list(dict.fromkeys(path.rpartition(".")[0] for path in paths))
        group = group.rpartition(".")[0]
    layers = tuple(paths)
    if shared:
        counts = {path: len(fitting[path].shapes) for path in paths}
        numbered = ([f"{path}@{i}" for i in range(n)] for path, n in counts.items())
        layers = tuple(chain.from_iterable(numbered))
    pattern = f"{group}@*" if shared else group
    are_all = tuple(capture.match_layers(model, pattern, text)) == layers
    width = min(fitting[path].shapes[0][-1] for path in paths)
    first = any(of.tokens_first for of in calls.values())
    every = pattern if are_all else layers
    return ProposedLayers(layers, every, group, width, tokens_first=first)


def _calls(model: nn.Module, text: Inputs) -> dict[str, _Calls]:
    """Return what the modules give that are called, of several copies of a text at once.

    That shows which outputs have no dimension of texts.
    """
    longest = int(text.lengths.argmax())
    ids = text.ids[longest][text.mask[longest]][None]
    batch = batch_of(ids.repeat(_COPIES + (ids.shape[1] == _COPIES), axis=0))
    calls: dict[str, _Calls] = {}

    def note(path: str, output: Any) -> None:
        tensor = first_tensor(output)
        of = calls.setdefault(path, _Calls())
        with suppress(ArgumentError):  # rows of which it is not known where the text is
            tensor = without_added(tensor, batch.ids.shape)
        shape = tuple(tensor.shape) if isinstance(tensor, Tensor) else ()
        of.shapes.append(shape)
        of.fit &= len(shape) == 3 and shape[:2] == batch.ids.shape
        of.tokens_first |= shape[:2] == batch.ids.shape[::-1]

    paths = [path for path, _ in model.named_modules() if path]
    with quiet(model), watched(model, paths, note):
        run(model, batch)
    return {path: calls[path] for path in paths if path in calls}


def _by_names(fitting: Mapping[str, _Calls]) -> tuple[list[str], str]:
    """Return the paths of what is named as blocks are, and their pattern; else the innermost."""
    parents = {path.rpartition(".")[0] for path in fitting}
    blocks = [path for path in fitting if path in parents]
    # A model of one block has no list of blocks, and the parts of its MLP are none.
    for pattern, among in (
        (_MLP, fitting),
        (_NUMBERED, blocks),
        (_ONE_MLP, blocks),
        (_NUMBERED, fitting),
    ):
        matches = [match for path in among if (match := pattern.fullmatch(path))]
        if matches and pattern is _ONE_MLP:
            return [matches[0][0]], matches[0][0]
        if matches:
            key = Counter(_of_group(match) for match in matches).most_common(1)[0][0]
            group = [match for match in matches if _of_group(match) == key]
            group.sort(key=lambda match: int(match["number"]))
            return [match[0] for match in group], f"{key[0]}*{key[1]}"
    innermost = [path for path in fitting if path not in parents]
    once = [path for path in innermost if len(fitting[path].shapes) == 1]
    return once or innermost, "*"


def _of_group(match: re.Match[str]) -> tuple[str, str]:
    name = match.groupdict().get("name")
    return match["blocks"], f".{name}" if name else ""


def _is_half(path: str, fitting: Mapping[str, _Calls]) -> bool:
    """Return whether the block of an MLP gives another width: ALBERT's `ffn` is half of one."""
    block = path.rpartition(".")[0]
    widths = {fitting[p].shapes[0][-1] for p in (path, block) if p in fitting}
    return len(widths) > 1


def _why_none(model: nn.Module, calls: Mapping[str, _Calls]) -> str:
    """Return why a model has no layers, with what one of its modules gives."""
    name = type(model).__name__
    if not calls:
        return f"{name} calls no module inside that could be a layer"
    path, of = max(calls.items(), key=lambda item: len(item[1].shapes))
    return (
        f"no module of {name} gives (texts, tokens, features) whenever it is called: of "
        f"{_COPIES} texts {path!r} gives {of.shapes[0]}, {plural(len(of.shapes), 'time')}"
    )
