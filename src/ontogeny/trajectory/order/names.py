"""The step in the name of a checkpoint, where a word says that it is one.

A name is cut into numbers, dates, hashes and the text between them. A number is a step if the word
before it is one for steps (``step500``, ``iter_500``, ``ckpt-500``, ``epoch=3``, ``tokens_2B``), or
if the name begins with it and goes on with such a word (``500_steps``), or if the name is nothing
else (``500``). A loss, a version, a date or a size of the model is none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from ...errors import CheckpointError

_UNITS = {
    "step": "step steps iter iters iteration iterations it itr ba update updates timestep"
    " timesteps",
    "checkpoint": "ckpt ckpts checkpoint chkpt snapshot",
    "epoch": "epoch epochs ep",
    "tokens": "token tokens tok toks",
}
_WORDS = {word: kind for kind, words in _UNITS.items() for word in words.split()}
_ENDINGS = tuple(word for word in _WORDS if len(word) > 3)  # globalstep500, modelepoch3
_FINEST = tuple(_UNITS)  # a step says more than an epoch, where a name holds both
# Words before numbers that say how well a model does, or which run it is, and not when.
_OTHERS = """
    loss acc accuracy ppl perplexity bleu score metric reward val valid eval test train auc f lr wd
    bs seed v ver version rank fold h d dim layer layers heads gpu node of
"""
_NO_STEP = frozenset(_OTHERS.split())
_SCALES = {"": 0, "k": 3, "m": 6, "b": 9, "t": 12}
_TOKEN = re.compile(
    r"""(?P<hash>(?<![A-Za-z0-9])(?=[0-9a-f]*\d)(?=(?:[0-9a-f]*[a-f]){2})[0-9a-f]{6,}(?![A-Za-z0-9]))
    | (?P<date>(?<!\d)(?:19|20)\d\d(?P<sep>[-_.]?)(?:0[1-9]|1[0-2])(?P=sep)(?:0[1-9]|[12]\d|3[01])
        (?:[-_T ]?\d\d[-_:.h]?\d\d(?:[-_:.]?\d\d)?)?(?!\d))
    | (?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?)
        (?P<scale>[kmbt](?![a-z])|[kmbt](?=step|iter|epoch|tok))?""",
    re.IGNORECASE | re.VERBOSE,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_SHARD = re.compile(r"[-_]\d{5}-of-\d{5}|^consolidated\.\d\d$")


@dataclass(frozen=True)
class Number:
    """A number in a name.

    Attributes
    ----------
    value
        The number, with its suffix k, M, B or T; None of a date, a hash and what is not whole,
        but for a part of an epoch.
    kind
        ``"step"``, ``"checkpoint"``, ``"epoch"`` or ``"tokens"`` by the word that marks it, else
        ``""``; ``"none"`` if a word says that it is something else.
    pattern
        The name with ``{}`` for this number and ``*`` for all others.
    """

    value: int | Decimal | None
    kind: str
    pattern: str

    @property
    def unit(self) -> str:
        """What it counts."""
        return self.kind if self.kind in ("epoch", "tokens") else "step"


def numbers_of(name: str) -> list[Number]:
    """Return the numbers in a name, without its suffix of files.

    Examples
    --------
    >>> [(n.value, n.kind, n.pattern) for n in numbers_of("epoch=1-step=2k")]
    [(1, 'epoch', 'epoch={}-step=*'), (2000, 'step', 'epoch=*-step={}')]
    """
    matches = [] if _SHARD.search(name) else list(_TOKEN.finditer(name))
    ends = [0, *(match.end() for match in matches)]
    texts = [name[a : m.start()] for a, m in zip(ends, matches, strict=False)] + [
        name[ends[-1] :]
    ]
    before = [_word(text, -1) for text in texts[:-1]]
    after = [_word(text, 0) for text in texts[1:]]
    # 500_steps_3_epochs: words follow their numbers if the name begins with one.
    follow = bool(matches) and not texts[0] and all(word in _WORDS for word in after)
    numbers = []
    for i, match in enumerate(matches):
        words = after if follow else before
        kind = _WORDS.get(words[i], "none" if words[i] in _NO_STEP else "")
        # Run_500steps, ckpt_3_epochs.
        if kind in ("", "checkpoint") and i == len(matches) - 1:
            kind = _WORDS.get(after[i], kind)
        if len(matches) == 1 and match.group() == name:
            kind = "step"
        holes = ["{}" if j == i else "*" for j in range(len(matches))]
        pattern = "".join(map("".join, zip(texts, [*holes, ""], strict=True)))
        numbers.append(Number(_value(match, kind), kind, pattern))
    return numbers


def read_name(name: str) -> Number | None:
    """Return the number in a name that is marked as its step, the finest of several; else None.

    Examples
    --------
    >>> read_name("epoch=0-val_loss=5.70").value, read_name("step_10k").value
    (0, 10000)
    >>> read_name("model_v2"), read_name("round_1_final")
    (None, None)
    """
    marked = [n for n in numbers_of(name) if n.kind in _FINEST and n.value is not None]
    return min(marked, key=lambda number: _FINEST.index(number.kind), default=None)


_Match: TypeAlias = "re.Match[str]"


def count(text: str) -> int | None:
    """Return a count such as ``"500"``, ``"1.5k"`` or ``"2e4"``, or None if it is not whole."""
    value = exact(text)
    return value if isinstance(value, int) else None


def exact(text: str) -> int | Decimal | None:
    """Return a count as `count` does, or a number with at most six decimals."""
    match = _TOKEN.fullmatch(text)
    return None if match is None or match["number"] is None else _exact(match)


def _value(match: _Match, kind: str) -> int | Decimal | None:
    if match["number"] is not None:
        value = _exact(match)
        return value if kind == "epoch" or isinstance(value, int) else None
    # A step may look like a date (20001015), the number of a checkpoint is one.
    dated = (
        match["date"] is not None
        and kind in ("step", "epoch")
        and match.group().isdecimal()
    )
    return int(match.group()) if dated else None


def _exact(match: _Match) -> int | Decimal | None:
    value = Decimal(match["number"]).scaleb(_SCALES[(match["scale"] or "").lower()])
    if value >= 10**18 or not value % 1:
        return int(value) if value < 10**18 else None
    short = round(value, 6)  # 0.333 333 333 333 of an epoch
    return value if short == value else short.normalize()


def whole(values: Mapping[str, int | Decimal]) -> tuple[dict[str, int], int]:
    """Return numbers times the least power of ten that makes all of them whole, and this power.

    Raises
    ------
    CheckpointError
        If some may be no decimals, as 1.10 beside 1.9.

    Examples
    --------
    >>> whole({"epoch_0.25": Decimal("0.25"), "epoch_1": 1})
    ({'epoch_0.25': 25, 'epoch_1': 100}, 100)
    """
    ends = {
        str(v).partition(".")[2]: n for n, v in values.items() if isinstance(v, Decimal)
    }
    odd = [name for end, name in ends.items() if end.endswith("0")]
    # Of 1.9 and 1.10, either may be the later one.
    if odd and len(set(map(len, ends))) > 1:
        raise CheckpointError(
            f"{odd[0]} may be a part of an epoch, or count within it; rename the files so that all "
            "have as many digits after the point."
        )
    power = next(
        10**k for k in range(7) if not any(10**k * v % 1 for v in values.values())
    )
    return {name: int(power * value) for name, value in values.items()}, power


def _word(text: str, place: int) -> str:
    """Return the first or last word of a text, as the tables here have it."""
    word = (_WORD.findall(text) or [""])[place].lower()
    return next((end for end in _ENDINGS if word.endswith(end)), word)
