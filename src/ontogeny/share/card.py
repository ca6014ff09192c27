"""The card of a shared study: what was studied and learned, what failed, how to open it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import xarray as xr

from ..report.notebook.summary import ResultSummary
from ..study.results.archive import ARCHIVE

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")


def card(
    tree: xr.DataTree,
    repo: str,
    files: Mapping[str, str],
    license_id: str | None = None,
    left_out: Sequence[str] = (),
) -> str:
    """Return the README of a data set that holds a study.

    Parameters
    ----------
    tree
        The merged result.
    repo
        ``"OWNER/NAME"``.
    files
        What each file is, by its name.
    license_id
        Identifier of a licence, such as ``"cc-by-4.0"``; without one the card says so.
    left_out
        Observables that the result no longer holds, because they show texts.
    """
    words = ResultSummary(tree)
    rows = [f"| `{name}` | {plain(what)} |" for name, what in files.items()]
    parts = [
        _front(words.title, license_id),
        f"# {plain(words.title)}",
        f"How a language model developed during training: {plain(words.studied)}.",
        "## What was studied",
        _observables(tree),
        "## What was learned",
        f"**{plain(words.heading)}**",
        *map(plain, words.sentences),
        "## What failed",
        _failed(words.failed, left_out),
        "## How to open it",
        _opening(repo),
        "## What is in it",
        "\n".join(["| file | what |", "| --- | --- |", *rows]),
        _licence(license_id),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(text: str) -> str:
    r"""Return text in which no sign is read as Markdown or HTML, in one line.

    Examples
    --------
    >>> print(plain("a <script> *b*"))
    a \<script\> \*b\*
    """
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def _front(title: str, license_id: str | None) -> str:
    from huggingface_hub import DatasetCardData

    data = DatasetCardData(
        license=license_id,
        pretty_name=" ".join(title.split()),
        tags=["ontogeny", "training-dynamics", "interpretability"],
        viewer=False,  # arrays are no table that the Hub could show
    )
    return f"---\n{data.to_yaml()}\n---"


def _observables(tree: xr.DataTree) -> str:
    sections = {name: json.loads(n.attrs.get("section", "{}")) for name, n in tree.children.items()}
    return "\n".join(f"- {plain(s.get('title') or name)}" for name, s in sections.items())


def _failed(failed: str, left_out: Sequence[str]) -> str:
    parts = [plain(failed) or "Nothing failed."]
    if left_out:
        names = ", ".join(f"`{name}`" for name in left_out)
        parts.append(f"Left out because they show texts of the inputs: {names}.")
    return " ".join(parts)


def _opening(repo: str) -> str:
    text = Path(__file__).with_name("opening.md").read_text(encoding="utf-8")
    return text.rstrip().format(repo=repo, archive=ARCHIVE)


def _licence(license_id: str | None) -> str:
    if license_id:
        return f"Licence: {plain(license_id)}."
    return "Its owner has chosen no licence yet: ask before you use more of it than the law allows."
