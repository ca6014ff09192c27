"""Options that several commands have."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_type_hints

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


def asks(*classes: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of classes: those that were given are its argument `asked`."""
    hints: dict[str, Any] = {}
    for options in classes:
        hints |= get_type_hints(options, include_extras=True)
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


class OfFiles:
    """What is said of the files of a folder, as `Trajectory.from_folder` takes it."""

    model: Model
    step_from: Annotated[
        str,
        typer.Option(
            metavar="PATTERN",
            help="Where the step stands: in names, as 'epoch={}', or under a key in the files.",
        ),
    ]
    only: Annotated[
        list[str], typer.Option(metavar="PATTERN", help="Take files of such names.")
    ]
    exclude: Annotated[
        list[str],
        typer.Option(metavar="PATTERN", help="Leave out files of such names."),
    ]
    key: Annotated[
        str,
        typer.Option(
            metavar="KEY", help="Where in the files the weights stand, as ema."
        ),
    ]
    base: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="What was fine-tuned, a folder, a file or OWNER/NAME: step 0.",
        ),
    ]


class Wished:
    """What is asked of a study, as `ontogeny.start.Wishes` takes it."""

    preset: Annotated[
        str,
        typer.Option(
            help="quick, standard (default), weights, circuits or everything; of one model, or of "
            "a fine-tuning, standard is one-model or fine-tuning.",
            autocompletion=_presets,
        ),
    ]
    texts: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="Texts, or token ids (.npy, .bin, .pt); English that is here by default.",
        ),
    ]
    steps: Annotated[
        str,
        typer.Option(
            metavar="N", help="How many checkpoints; or steps with commas; or all."
        ),
    ]
    sets: Annotated[
        list[str],
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any key of the study file: inputs.max_texts=50.",
        ),
    ]
    tokenizer: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="A tokenizer on the Hub, a folder, FILE:NAME, or none."
        ),
    ]
    max_length: Annotated[
        int,
        typer.Option(
            min=2, metavar="N", help="Tokens of a text; what follows is cut off."
        ),
    ]
    train_texts: Annotated[
        list[str],
        typer.Option(
            metavar="FILE", help="Texts of the training set, beside held-out --texts."
        ),
    ]
    base_texts: Annotated[
        list[str],
        typer.Option(
            metavar="FILE", help="Texts of what a base model knew, beside new --texts."
        ),
    ]
    floor: Annotated[
        str,
        typer.Option(
            metavar="NATS",
            help="The best possible loss, where it is known; or a column or .npy with one a text.",
        ),
    ]
    score: Annotated[
        str,
        typer.Option(
            metavar="PLACES",
            help="Where predictions are scored: all, answer, labels, or last:K tokens.",
        ),
    ]
    answer_after: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="What stands before an answer, as '='; of token ids an id; or regex:PATTERN.",
        ),
    ]
    token_labels: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="Labels beside token ids, -100 where nothing is asked (.npy, .pt).",
        ),
    ]
    abilities: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="Minimal pairs: JSON lines or CSV with right and wrong; English by default.",
        ),
    ]
    budget: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Take the checkpoints and texts that fit a time, such as 20m or 8h.",
        ),
    ]
    prompts: Annotated[
        list[str],
        typer.Option(
            metavar="TEXT",
            help="What the model goes on with at each step; beginnings of texts by default.",
        ),
    ]
