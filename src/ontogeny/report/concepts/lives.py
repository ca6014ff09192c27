"""Concepts as the page tells of them, and which of them have a life line on the first screen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import xarray as xr

from ...words.catalogue import concepts as say
from ...words.formats import plural, with_interval
from ...words.labels import truncate
from ...words.nodes import Node
from .arrays import ConceptArrays
from .learned import is_learned

FULL = 0.9  # of its peak, below which a concept ends weaker than it was
FEW = 10  # life lines of the first screen

SHEET = 24  # concepts of a contact sheet


@dataclass(frozen=True)
class Concept:
    """One concept: where it stands in the node's arrays, and its life in training steps.

    ``name`` is empty where it got none; ``given`` is the name that a person gave it, which goes
    before. Steps are NaN where there is no such step.
    ``kind`` is empty where lives are not known. ``beyond_controls`` is whether its name is better
    than every name of every control run, and ``sharpness`` how well its best rule or three tokens
    tell of it. ``rule_tells`` is whether some rule tells its places from others, and ``tails`` the
    excess kurtosis of the code, where it is known. ``readable_at_end`` is whether it can be read
    at the last checkpoint, where that is known, and ``end`` its strength there as a share of its
    peak.
    """

    place: tuple[int, int]
    layer: str
    short_layer: str
    name: str
    given: str
    kind: str
    born: float
    after: float
    before: float
    settled: float
    gone: float
    readable_from: float
    peak: float
    sharpness: float
    beyond_controls: bool = False
    rule_tells: bool = False
    tails: float = math.nan
    readable_at_end: bool = True
    end: float = math.nan

    @property
    def number(self) -> int:
        """Its number in the dictionary of its layer."""
        return self.place[1]

    @property
    def title(self) -> str:
        """Its name, else its number."""
        return self.given or self.name or f"C{self.number}"

    @property
    def depth(self) -> str:
        """The layer as short as it can be: "L2" where it has a number."""
        return self.short_layer.replace("layer ", "L")

    @property
    def course(self) -> str:
        """What became of a concept without a birth, in a few words."""
        if self.kind not in (say.GROWING, "from the start"):
            return self.kind
        if not self.readable_at_end:
            return say.NOT_AT_END
        if not self.has_waned:
            return self.kind
        was = say.GREW if self.kind == say.GROWING else self.kind
        return say.ENDS.format(was=was, share=f"{self.end:.0%}".replace("%", " %"))

    @property
    def has_waned(self) -> bool:
        """Whether it is well below its peak at the end."""
        return self.end < FULL

    @property
    def life(self) -> str:
        """Its birth with its interval, else its course."""
        if not math.isfinite(self.born):
            return self.course
        return with_interval(self.born, self.after, self.before)


@dataclass(frozen=True)
class Concepts:
    """All concepts of a node, and what names were measured against.

    Those with a name stand first, and of them the sharpest; then those of which a rule tells
    something, and the others, by the tails of their codes.

    ``apart`` are latents that can be read, but that half of the texts does not find; they are no
    part of ``every``, and no sentence counts them as concepts. ``named`` is None where the result
    holds no names, ``unnamed`` says why no concept of any layer could get one, and
    ``named_controls`` holds for each control run how many got one, of how many. ``born_controls``
    holds how many concepts were born in each, which were read at ``control_steps`` steps at most;
    ``born_seen`` is how many births of the run can be seen from these steps alone.
    """

    node: Node
    arrays: ConceptArrays
    every: tuple[Concept, ...]
    apart: tuple[Concept, ...]
    latents: int
    named: int | None
    unnamed: str
    named_controls: tuple[tuple[int, int | None], ...]
    born_controls: tuple[int, ...]
    control_steps: int
    born_seen: int
    readable: float

    @property
    def data(self) -> xr.Dataset:
        """The node's dataset."""
        return self.node.dataset

    @cached_property
    def with_name(self) -> tuple[Concept, ...]:
        """Concepts with a name."""
        return tuple(concept for concept in self.every if concept.name)

    @cached_property
    def born(self) -> tuple[Concept, ...]:
        """Concepts whose birth is known."""
        return tuple(concept for concept in self.every if math.isfinite(concept.born))

    @property
    def is_zero(self) -> bool:
        """Whether none has a name and none was born."""
        return not self.born and not self.with_name

    @cached_property
    def gone(self) -> tuple[Concept, ...]:
        """Concepts that are gone by the end."""
        return tuple(concept for concept in self.every if math.isfinite(concept.gone))

    @cached_property
    def candidates(self) -> tuple[Concept, ...]:
        """Concepts that may have a life line: those with a name, or all where none has one."""
        return tuple(one for one in self.every if one.given or one.name) or self.every

    @property
    def has_names(self) -> bool:
        """Whether any has a name, so that a line drawn of it says whose it is."""
        return any(concept.given or concept.name for concept in self.candidates)

    @cached_property
    def lines(self) -> tuple[Concept, ...]:
        """The concepts whose life lines are shown at first, by birth."""
        return self.choice(FEW)

    def choice(self, count: int) -> tuple[Concept, ...]:
        """Return at most `count` concepts, births spread over the run, by birth.

        Births come first. Where there are more of them than places, they are cut by their order
        into as many parts, and the sharpest of each part is chosen. Other places are for the
        sharpest of the rest.
        """
        born = sorted(
            (c for c in self.candidates if math.isfinite(c.born)), key=lambda c: c.born
        )
        rest = [c for c in self.candidates if not math.isfinite(c.born)]
        rank = {concept.place: i for i, concept in enumerate(self.candidates)}
        parts = [
            part for part in np.array_split(np.arange(len(born)), count) if len(part)
        ]
        first = [
            min((born[i] for i in part), key=lambda c: rank[c.place]) for part in parts
        ]
        return tuple(sorted([*first, *rest[: count - len(first)]], key=moment))


def moment(concept: Concept) -> float:
    """Concepts stand by birth, those that are there from the start first."""
    if concept.kind == "from the start":
        return -math.inf
    return concept.born if math.isfinite(concept.born) else math.inf


def choice_words(concepts: Concepts, count: int) -> str:
    """Say which concepts have a life line, and of how many."""
    n_chosen = len(concepts.choice(count))
    of = len(concepts.candidates)
    if n_chosen == of:
        return best_words(concepts, count)
    best = best_of(concepts)
    born = sum(math.isfinite(concept.born) for concept in concepts.candidates)
    how = say.BORN_AND_BEST
    if not born:
        how = say.NONE_BORN
    elif born > n_chosen:
        how = say.OF_STRETCHES
    elif born == n_chosen:
        how = say.BORN
    how = how.format(born=f"{born:,}", best=best, count=n_chosen)
    return say.CHOSEN.format(count=n_chosen, kind=_kind(concepts), how=how)


def marks_words(chosen: Sequence[Concept]) -> str:
    """Say what the marks and words behind life lines are, of those that are drawn."""
    births = say.BIRTH_MARKS if any(math.isfinite(one.born) for one in chosen) else ""
    courses = {one.course for one in chosen}
    growing = [one for one in chosen if one.kind == say.GROWING and one.readable_at_end]
    waned = any(one.has_waned for one in growing)
    grows = say.GROWS[waned] if growing else ""
    left = say.LEFT if say.NOT_AT_END in courses else ""
    return " ".join(filter(None, [births, grows, left]))


def best_words(concepts: Concepts, count: int) -> str:
    """Say which concepts are shown where they are the best `count`, and of how many."""
    of = len(concepts.candidates)
    if of <= count:
        return (say.ALL_OF if of > 1 else say.ONLY).format(kind=_kind(concepts))
    how = say.BEST.format(best=best_of(concepts))
    return say.CHOSEN.format(count=count, kind=_kind(concepts), how=how)


def _kind(concepts: Concepts) -> str:
    """Say how many concepts there are to choose from, and of how many in all."""
    of = len(concepts.candidates)
    every = len(concepts.every)
    noun = "named concept" if concepts.has_names else "concept"
    kind = plural(of, noun) if of > 1 else say.ONLY_ONE.format(noun=noun)
    beside = "" if of == every else say.OF_ALL.format(count=f"{every:,}")
    return f"{kind}{beside}{'' if concepts.has_names else say.WITHOUT_NAME}"


def best_of(concepts: Concepts) -> str:
    """Return by what concepts are chosen where not all are shown."""
    if is_learned(concepts.data) and concepts.has_names:
        return "best named"
    return (
        "sharpest" if math.isfinite(concepts.candidates[0].sharpness) else "strongest"
    )


def line_names(concepts: Sequence[Concept], most: int = 26) -> list[str]:
    """Return name and layer of concepts, with their number where several have the same of both.

    Names are cut at `most` letters.
    """
    names = [
        f"{truncate(concept.title, most)} · {concept.depth}" for concept in concepts
    ]
    return [
        f"{name} · C{concept.number}" if names.count(name) > 1 else name
        for name, concept in zip(names, concepts, strict=True)
    ]
