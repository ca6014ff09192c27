"""What would leave this machine, for a person to read before anything does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import xarray as xr

from ..machine import size_text
from .texts import LABELS, Passage, passages, private_looking


@dataclass(frozen=True)
class PrivateText:
    """Something that looks private: what kind of thing, what, and where it was found first."""

    kind: str
    what: str
    where: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}, {self.what}"


@dataclass(frozen=True)
class Listing:
    """The files with their sizes, and what in them looks private."""

    files: dict[str, tuple[int, str]]
    shortened: dict[str, str]
    private: tuple[PrivateText, ...]
    passages: tuple[Passage, ...]
    own_code: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def secrets(self) -> list[PrivateText]:
        """What looks like a password or an access token."""
        return [match for match in self.private if match.kind == "a secret"]

    def lines(self) -> list[str]:
        """Return the list, one line each."""
        return [
            *(
                f"  {name:<18} {size_text(size):>8}  {what}"
                for name, (size, what) in self.files.items()
            ),
            "Weights, checkpoints, cells and your own code are not among them.",
            *_section(
                "Texts and tokens of the inputs in the result and the page:",
                self.passages,
            ),
            *_section("Looks private, and would be pushed as it is:", self.private),
            *_section(
                "Paths shortened in what is pushed:",
                [f"{path} -> {name}" for path, name in self.shortened.items()],
            ),
            *_section(
                "Code of yours that the study file names, not pushed:", self.own_code
            ),
            *_section("Left out because they show texts:", self.left_out),
            *self.notes,
        ]


def looks_private(tree: xr.DataTree, texts: dict[str, str]) -> tuple[PrivateText, ...]:
    """Return what looks private in a result and in the text files beside it, each thing once."""
    by_kind: dict[tuple[str, str], PrivateText] = {}
    for where, text in [*_strings(tree), *_lines(texts)]:
        for kind, what in private_looking(text):
            by_kind.setdefault((kind, what), PrivateText(kind, what, where))
    return tuple(by_kind.values())


def texts_in(tree: xr.DataTree) -> tuple[Passage, ...]:
    """Return the variables that hold texts, the longest texts first."""
    return tuple(
        sorted(passages(tree), key=lambda passage: (-len(passage.sample), str(passage)))
    )


def _strings(tree: xr.DataTree) -> Iterator[tuple[str, str]]:
    for node in tree.subtree:
        at = node.path.strip("/") or "the result"
        for name, value in node.attrs.items():
            yield f"{at}, {name}", str(value)
        for name, array in node.to_dataset(inherit=False).variables.items():
            for key, value in array.attrs.items():
                yield f"{at}, {name}.{key}", str(value)
            if array.dtype.kind in "OUST":
                kind = "" if str(name) in LABELS else ", a text"
                for word in dict.fromkeys(map(str, array.values.ravel().tolist())):
                    yield f"{at}, {name}{kind}", word


def _lines(texts: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        for number, line in enumerate(text.split("\n"), start=1):
            yield f"{name}, line {number}", line


def _section(heading: str, items: Iterable[object]) -> list[str]:
    # All of them: nothing leaves that was not listed.
    lines = [f"  {item}" for item in items]
    return [heading, *lines] if lines else []
