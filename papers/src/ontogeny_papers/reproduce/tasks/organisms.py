"""A small world of organisms: which attribute can be said of which organism."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

_TEMPLATE = "The organism that {attribute} is"
_PLANTS = ("rose", "tulip", "apple", "oak")
_MAMMALS = ("dog", "wolf", "cat", "tiger")
_BIRDS = ("sparrow", "eagle")
_FISH = ("trout", "shark")
_ANIMALS = _MAMMALS + _BIRDS + _FISH
_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "uses sunlight for food": _PLANTS,
    "grows roots": _PLANTS,
    "has green leaves": _PLANTS,
    "reproduces with pollen": ("rose", "tulip"),
    "bears fruit": ("apple",),
    "moves to find food": _ANIMALS,
    "breathes oxygen": _ANIMALS,
    "stays warm-blooded": _MAMMALS,
    "feeds milk to its young": _MAMMALS,
    "hunts in groups": ("dog", "wolf"),
    "has retractable claws": ("cat", "tiger"),
    "has feathers": _BIRDS,
    "lives in water": _FISH,
}


@dataclass(frozen=True, eq=False)
class OrganismWorld:
    """Attributes, subjects, and which subjects each attribute is true of.

    Parameters
    ----------
    subjects
        The V words that end a sentence.
    attributes
        The m attributes; each makes one context.
    S
        Support matrix (V, m) of zeros and ones.

    Examples
    --------
    >>> world = organism_world()
    >>> world.S.shape, world.contexts[7]
    ((12, 13), 'The organism that stays warm-blooded is')
    >>> world.pairs[0]
    ('The organism that uses sunlight for food is', 'rose')
    """

    subjects: tuple[str, ...]
    attributes: tuple[str, ...]
    S: np.ndarray

    @property
    def P(self) -> np.ndarray:
        """Next-word distributions (V, m): uniform over the subjects of an attribute."""
        return self.S / self.S.sum(axis=0)

    @property
    def contexts(self) -> tuple[str, ...]:
        """The m beginnings of sentences."""
        return tuple(_TEMPLATE.format(attribute=a) for a in self.attributes)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Every true (context, subject) pair, for `ontogeny.semantics.support_from_pairs`."""
        return [
            (context, subject)
            for context, column in zip(self.contexts, self.S.T, strict=True)
            for subject, true in zip(self.subjects, column, strict=True)
            if true
        ]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words: the subjects, then those of the contexts in the order they are met."""
        return tuple(dict.fromkeys([*self.subjects, *" ".join(self.contexts).split()]))

    @property
    def context_ids(self) -> np.ndarray:
        """Positions of the contexts' words in `words`, (m, longest) int64, -1 after the end."""
        number = {word: i for i, word in enumerate(self.words)}
        rows = [[number[word] for word in context.split()] for context in self.contexts]
        longest = max(map(len, rows))
        return np.array([row + [-1] * (longest - len(row)) for row in rows])


def organism_world() -> OrganismWorld:
    """Return the world of organisms: 12 subjects and 13 attributes with three levels.

    They are plants and animals; mammals, birds and fish; dogs, cats, flowers and fruit. The centred
    support has rank 6, its first concept separates plants from animals and its second mammals from
    other animals.

    Notes
    -----
    After Zhao and Thrampoulidis 2025, Figs 1-3, which show such a table only in part; this one
    fills it in with plain facts.

    Examples
    --------
    >>> organism_world().S.shape
    (12, 13)
    """
    every = _ATTRIBUTES.values()
    subjects = tuple(dict.fromkeys(s for true_of in every for s in true_of))
    S = np.array([[float(s in true_of) for true_of in every] for s in subjects])
    return OrganismWorld(subjects, tuple(_ATTRIBUTES), S)
