"""A proposal as the text of a study file, with comments that say what may be changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .._version import __version__
from ..observables.registry import kinds
from . import toml
from .proposal import Proposal

_NOTES = {
    "trajectory": {
        "model": "code of yours, which is run to build the model",
        "objective": 'what it predicts, of every observable: "causal" or "masked"',
        "tokenizer": "a name on the Hub, a folder, or a function of yours",
    },
    "inputs": {
        "bundled": 'for want of yours; files = ["my-texts/*.txt"] says more',
        "files": 'unit = "line", "paragraph", "document" or "file" says what one text is',
        "tokens": 'ids; of .bin files dtype = "uint16" is taken',
        "max_texts": "more texts: less noise, more time",
        "max_length": "tokens of a text",
        "score": 'where predictions are scored: "all", "answer", "labels" or "last:1"',
        "answer_after": 'answers follow its last occurrence; answer_occurrence = "first" says else',
    },
    "controls": {
        "count": "with 2 or more the page says what was learned; 0: none",
        "steps": "each is read at about so many steps",
    },
}
_ORDER = ("trajectory", "inputs", "observables", "left_out", "controls", "options")
_LEFT_OUT = "What the preset has and this run cannot give, and why; the page says it."
_OPTIONS = '[options]: device = "cuda", batch_size = 32, dtype = "bfloat16", reference = "first".'


def study_text(proposal: Proposal, run_with: str) -> str:
    """Return the study file of a proposal; `run_with` is the command that runs it."""
    return toml.joined(_blocks(proposal, run_with))


def _blocks(proposal: Proposal, run_with: str) -> Iterator[list[str]]:
    content = proposal.content
    wishes = proposal.wishes
    yield [
        *toml.comment(
            f"A study of {wishes.source}, written by ontogeny {__version__}."
        ),
        *toml.comment(f"{proposal.shown.line}."),
        *toml.comment(f"Preset {proposal.preset.name}: {proposal.preset.title}."),
        *toml.comment(f"Run it:  {run_with}"),
        *toml.comment(
            "All of it may be changed; wrong keys and values are refused by name."
        ),
    ]
    if "title" in content:
        yield toml.lines({"title": content["title"]})
    for name in _ORDER:
        if name == "observables":
            for entry in content[name]:
                yield _observable(entry)
        elif name == "left_out":
            for entry in content.get(name, ()):
                yield [*toml.comment(_LEFT_OUT), "[[left_out]]", *toml.lines(entry)]
        elif content.get(name):
            yield [f"[{name}]", *toml.lines(content[name], _notes(name, proposal))]
    if not content.get("options"):
        yield toml.comment(f"More can be said under {_OPTIONS}")


def _notes(name: str, proposal: Proposal) -> dict[str, str]:
    notes = dict(_NOTES.get(name, {}))
    if name == "trajectory":
        notes["select"] = f"of {proposal.available} checkpoints; without it, all"
    return notes


def _observable(entry: Mapping[str, Any]) -> list[str]:
    cls = kinds().get(str(entry.get("kind")))
    question = toml.comment(cls.question) if cls and cls.question else []
    return [*question, "[[observables]]", *toml.lines(entry)]
