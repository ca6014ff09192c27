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
StepFrom = Annotated[
    str,
    typer.Option(
        "--step-from",
        metavar="PATTERN",
        help="Where the step stands: in names, as 'epoch={}', or under a key in the files.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="PATTERN", help="Take files of such names."),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="Leave out files of such names."),
]
Key = Annotated[
    str,
    typer.Option(
        "--key", metavar="KEY", help="Where in the files the weights stand, as ema."
    ),
]
Base = Annotated[
    str,
    typer.Option(
        metavar="MODEL",
        help="What was fine-tuned, a folder, a file or OWNER/NAME: step 0.",
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


def wished(
    preset: Annotated[
        str | None,
        typer.Option(
            help="quick, standard (default), weights, circuits or everything; of one model, or of "
            "a fine-tuning, standard is one-model or fine-tuning.",
            autocompletion=_presets,
        ),
    ] = None,
    texts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Texts, or token ids (.npy, .bin, .pt); English that is here by default.",
        ),
    ] = None,
    steps: Annotated[
        str,
        typer.Option(
            metavar="N", help="How many checkpoints; or steps with commas; or all."
        ),
    ] = "",
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any key of the study file: inputs.max_texts=50.",
        ),
    ] = None,
    model: Model = "",
    tokenizer: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A tokenizer on the Hub, a folder, FILE:NAME, or none."
        ),
    ] = "",
    max_length: Annotated[
        int | None,
        typer.Option(
            min=2, metavar="N", help="Tokens of a text; what follows is cut off."
        ),
    ] = None,
    train_texts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Texts of the training set, beside held-out --texts."
        ),
    ] = None,
    base_texts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Texts of what a base model knew, beside new --texts."
        ),
    ] = None,
    floor: Annotated[
        str,
        typer.Option(
            metavar="NATS",
            help="The best possible loss, where it is known; or a column or .npy with one a text.",
        ),
    ] = "",
    score: Annotated[
        str,
        typer.Option(
            metavar="PLACES",
            help="Where predictions are scored: all, answer, labels, or last:K tokens.",
        ),
    ] = "",
    answer_after: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="What stands before an answer, as '='; of token ids an id; or regex:PATTERN.",
        ),
    ] = "",
    token_labels: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Labels beside token ids, -100 where nothing is asked (.npy, .pt).",
        ),
    ] = None,
    prompts: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="What the model goes on with at each step; beginnings of texts by default.",
        ),
    ] = None,
    step_from: StepFrom = "",
    only: Only = None,
    exclude: Exclude = None,
    key: Key = "",
    base: Base = "",
    abilities: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="Minimal pairs: JSON lines or CSV with right and wrong; English by default.",
        ),
    ] = None,
) -> dict[str, Any]:
    """Return what was asked for, as `ontogeny.start.Wishes` takes it."""
    options: dict[str, Any] = {
        "preset": preset,
        "texts": texts,
        "steps": steps,
        "sets": sets,
        "model": model,
        "tokenizer": tokenizer,
        "max_length": max_length,
        "abilities": abilities,
        "train_texts": train_texts,
        "base_texts": base_texts,
        "score": score,
        "answer_after": answer_after,
        "token_labels": token_labels,
        **chosen(step_from, only, exclude, key, base),
    }
    options |= {"floor": floor, "prompts": prompts}
    return {name: value for name, value in options.items() if value}


def chosen(
    step_from: str,
    only: list[str] | None,
    exclude: list[str] | None,
    key: str,
    base: str,
) -> dict[str, Any]:
    """Return what was said of a folder's files, as `Trajectory.from_folder` takes it."""
    options = {
        "step_from": step_from,
        "only": only,
        "exclude": exclude,
        "key": key,
        "base": base,
    }
    return {name: value for name, value in options.items() if value}


def with_wishes(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `wished`: what it returns is the command's `asked`."""
    asked = inspect.signature(wished, eval_str=True).parameters
    parameters = inspect.signature(command, eval_str=True).parameters

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in asked}
        command(asked=wished(**options), **arguments)

    merged: list[inspect.Parameter] = []
    for parameter in parameters.values():
        merged += asked.values() if parameter.name == "asked" else [parameter]
    merged = [p.replace(kind=p.KEYWORD_ONLY) for p in merged]
    called.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in merged}
    return called
