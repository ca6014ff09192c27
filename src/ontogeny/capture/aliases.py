"""Short names for the parts of known families, translated into patterns over paths.

``attn``, ``mlp``, ``resid``, ``resid_pre``, ``resid_mid``, ``q``, ``k``, ``v``, ``o`` mean that
part of every block, ``layers[2].attn``, ``layers[-1].mlp``, ``layers[0:12:3].q`` that of some
blocks, ``layers[2]`` a block itself; ``embed`` and ``unembed`` are token embedding and vocabulary
map.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from .families import ALIASES, FAMILIES, Family, family_of

_IN_SOME_BLOCKS = re.compile(
    r"layers(?:\[(?P<index>[^\[\]]+)\]|\.(?P<part>[^.]+))(?:\.(?P<name>\w+))?"
)


@dataclass(frozen=True)
class Aliases:
    """The short names of one family, for sites or for weight matrices.

    Parameters
    ----------
    title
        The family's name; ``""`` if it is unknown.
    blocks
        Path of the numbered blocks.
    in_block
        Patterns relative to a block, by name; all of them are meant. The name ``""`` is the block.
    whole
        Patterns relative to the model, by name; the first that matches is meant.
    """

    title: str = ""
    blocks: str = ""
    in_block: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    whole: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def translate(self, pattern: str) -> list[tuple[str, ...]]:
        """Return sets of patterns over paths, of which the first that matches is meant.

        Examples
        --------
        >>> gpt2 = Aliases("GPT-2", "h", {"attn": ("attn",)}, {"embed": ("wte",)})
        >>> (
        ...     gpt2.translate("layers[-1].attn"),
        ...     gpt2.translate("embed"),
        ...     gpt2.translate("h.0.mlp"),
        ... )
        ([('h.-1.attn',)], [('wte',)], [])
        """
        text, hash_, part = pattern.partition("#")
        groups = [(path,) for path in self.whole.get(text, ())] or self._in_blocks(text)
        if hash_ and any("#" in "".join(group) for group in groups):
            return []  # the name is already a part or an input
        return [tuple(path + hash_ + part for path in group) for group in groups]

    def _in_blocks(self, text: str) -> list[tuple[str, ...]]:
        some = _IN_SOME_BLOCKS.fullmatch(text)
        index = "*"
        name = text
        if some:
            index = some["index"] or some["part"]
            name = some["name"] or ""
            index = f"[{index}]" if ":" in index else index
        if not text or name not in self.in_block:
            return []
        block = f"{self.blocks}.{index}"
        return [tuple(_joined(block, relative) for relative in self.in_block[name])]

    @property
    def names(self) -> tuple[str, ...]:
        """The names that this family knows."""
        return tuple(name for name in (*self.in_block, *self.whole) if name)

    def hint(self, pattern: str) -> str:
        """Return the sentences on short names that belong under a pattern without a match."""
        text, hash_, part = pattern.partition("#")
        wrong = (
            f" No such module has a part {part!r}." if hash_ and part != "in" else ""
        )
        if text == "unembed":
            wrong += (
                " There is no vocabulary map; a tied one is stored as 'embed' only."
            )
        if self.title:
            return (
                f"{wrong} Short names known for {self.title}: {', '.join(self.names)}."
            )
        if text not in ALIASES and not _IN_SOME_BLOCKS.fullmatch(text):
            return wrong
        return (
            f"{wrong} Short names such as {text!r} are known for {', '.join(FAMILIES)}; "
            "this is none of them."
        )


def _joined(block: str, relative: str) -> str:
    return block + ("." if relative and not relative.startswith("#") else "") + relative


def site_aliases(model: Any) -> Aliases:
    """Return the short names of a model's sites; none if its family is unknown."""
    family = family_of(model)
    if family is None:
        return Aliases()
    in_block = {name: (site,) for name, site in family.in_block.items()}
    return _aliases(family, {"": ("",), **in_block})


def attention_aliases(model: Any) -> Aliases:
    """Return the short names of the modules that return attention maps."""
    family = family_of(model)
    if family is None:
        return Aliases()
    maps = (family.attention,)
    return Aliases(family.title, family.blocks, {"": maps, "attn": maps})


def block_aliases(names: Iterable[str]) -> Aliases:
    """Return the short names of weight matrices; the family follows from the tensors' names.

    Families with the same names for tensors need not be distinguished.
    """
    family = family_of_tensors(tuple(names))
    if family is None:
        return Aliases()
    projections = {
        name: (_weight(family.in_block[name]),) for name in ("q", "k", "v", "o")
    }
    blocks = {
        "": ("**",),
        "attn": tuple(f"{path}.**" for path in family.attn_weights),
        "mlp": tuple(f"{path}.**" for path in family.mlp_weights),
    }
    aliases = _aliases(family, {**blocks, **projections}, suffix=".weight")
    return replace(aliases, title=f"tensors named as in {family.title}")


@lru_cache(maxsize=16)  # it is asked for each matrix
def family_of_tensors(names: tuple[str, ...]) -> Family | None:
    """Return the first family whose query projection is among the tensors, or None.

    Examples
    --------
    >>> family_of_tensors(("h.0.attn.c_attn.weight",)).title
    'GPT-2'
    """
    for family in FAMILIES.values():
        path = family.query.partition("#")[0]
        end = re.compile(
            rf"(?:^|\.){re.escape(family.blocks)}\.\d+\.{re.escape(path)}\.weight$"
        )
        if any(end.search(name) for name in names):
            return family
    return None


def _weight(site: str) -> str:
    path, hash_, part = site.partition("#")
    return f"{path}.weight{hash_}{part}"


def _aliases(
    family: Family, in_block: Mapping[str, tuple[str, ...]], suffix: str = ""
) -> Aliases:
    whole = {
        "embed": tuple(path + suffix for path in family.embed),
        "unembed": tuple(path + suffix for path in family.unembed),
    }
    return Aliases(family.title, family.blocks, in_block, whole)
