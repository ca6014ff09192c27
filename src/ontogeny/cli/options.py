"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

Source = Annotated[
    str,
    typer.Argument(
        help="A folder of checkpoints, one such file, or a repository OWNER/NAME on the Hub."
    ),
]
Model = Annotated[
    str,
    typer.Option(
        metavar="FILE:NAME", help="Code of yours that builds the model; it is run."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Studied = Annotated[
    str,
    typer.Argument(metavar="DIR", help="Folder of a study, or OWNER/NAME on the Hub."),
]
MaxRevisions = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Keep at most N downloaded Hub revisions on disk."
    ),
]


def output(metavar: str, what: str) -> Any:
    """Return the option that says where the result of a command goes, the same for all of them."""
    return typer.Option("--output", "-o", metavar=metavar, help=what)


Output = Annotated[
    Path | None, output("DIR", "Folder of the study; studies/NAME by default.")
]
StudyFile = Annotated[
    Path, typer.Argument(metavar="STUDY.toml", help="The study file.")
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code", help="Let the file run the model's own code on the Hub."
    ),
]


def folder_of(study: Path, output: Path | None) -> Path:
    """Return the folder of a study: the one that is given, or that of its file's name."""
    return output if output is not None else Path("studies") / study.stem


def layer_of(text: str | None) -> int | str | None:
    """Return a layer as it is named: by its number, a path or a short name.

    Examples
    --------
    >>> layer_of("-1"), layer_of("--1"), layer_of("²"), layer_of(None)
    (-1, '--1', '²', None)
    """
    if text is None:
        return None
    return int(text) if text.removeprefix("-").isdecimal() else text


def _presets(incomplete: str) -> list[str]:
    from .catalogue import catalogue

    return [name for name in catalogue()["presets"] if name.startswith(incomplete)]


def option(kind: Any, metavar: str | None, what: str, *names: str, **more: Any) -> Any:
    """Return what a command declares of an option: its kind, its value in the help, and a line."""
    return Annotated[kind, typer.Option(*names, metavar=metavar, help=what, **more)]


def asks(
    *tables: dict[str, Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of tables: those that were given are its argument `asked`."""
    hints: dict[str, Any] = {}
    for table in tables:
        hints |= table
    by_name = inspect.Parameter.KEYWORD_ONLY
    asked = [
        inspect.Parameter(name, by_name, default=None, annotation=hint)
        for name, hint in hints.items()
    ]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(**arguments: Any) -> None:
            values = {name: arguments.pop(name) for name in hints}
            given = {name: value for name, value in values.items() if value}
            command(asked=given, **arguments)

        merged: list[inspect.Parameter] = []
        for parameter in inspect.signature(command, eval_str=True).parameters.values():
            of_command = [parameter.replace(kind=by_name)]
            merged += asked if parameter.name == "asked" else of_command
        called.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in merged}
        return called

    return with_options


# What is said of the files of a folder, as `Trajectory.from_folder` takes it.
OF_FILES: dict[str, Any] = {
    "model": Model,
    "step_from": option(
        str,
        "PATTERN",
        "Where the step stands: in names, as 'epoch={}', or under a key in the files.",
    ),
    "only": option(list[str], "PATTERN", "Take files of such names."),
    "exclude": option(list[str], "PATTERN", "Leave out files of such names."),
    "key": option(str, "KEY", "Where in the files the weights stand, as ema."),
    "base": option(
        str, "MODEL", "What was fine-tuned, a folder, a file or OWNER/NAME: step 0."
    ),
}

# What is asked of a study, as `ontogeny.start.Wishes` takes it.
WISHED: dict[str, Any] = {
    "preset": option(
        str,
        None,
        "quick, standard (default), weights, circuits or everything; of one model, or of "
        "a fine-tuning, standard is one-model or fine-tuning.",
        autocompletion=_presets,
    ),
    "texts": option(
        list[str],
        "FILE",
        "Texts, or token ids (.npy, .bin, .pt); English that is here by default.",
    ),
    "steps": option(str, "N", "How many checkpoints; or steps with commas; or all."),
    "sets": option(
        list[str],
        "KEY=VALUE",
        "Any key of the study file: inputs.max_texts=50.",
        "--set",
    ),
    "tokenizer": option(
        str, "NAME", "A tokenizer on the Hub, a folder, FILE:NAME, or none."
    ),
    "max_length": option(int, "N", "Tokens of a text; what follows is cut off.", min=2),
    "train_texts": option(
        list[str], "FILE", "Texts of the training set, beside held-out --texts."
    ),
    "base_texts": option(
        list[str], "FILE", "Texts of what a base model knew, beside new --texts."
    ),
    "floor": option(
        str,
        "NATS",
        "The best possible loss, where it is known; or a column or .npy with one a text.",
    ),
    "score": option(
        str,
        "PLACES",
        "Where predictions are scored: all, answer, labels, or last:K tokens.",
    ),
    "answer_after": option(
        str,
        "TEXT",
        "What stands before an answer, as '='; of token ids an id; or regex:PATTERN.",
    ),
    "token_labels": option(
        list[str],
        "FILE",
        "Labels beside token ids, -100 where nothing is asked (.npy, .pt).",
    ),
    "abilities": option(
        list[str],
        "FILE",
        "Minimal pairs: JSON lines or CSV with right and wrong; English by default.",
    ),
    "budget": option(
        str,
        "TIME",
        "Take the checkpoints and texts that fit a time, such as 20m or 8h.",
    ),
    "prompts": option(
        list[str],
        "TEXT",
        "What the model goes on with at each step; beginnings of texts by default.",
    ),
}
