"""The script of a SLURM job array that runs a study, in the environment that wrote it."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import join, quote
from typing import Annotated

import typer

from ..errors import ArgumentError
from .options import Output, StudyFile, Trust, folder_of

_LIBRARIES = 2e9  # bytes that the libraries and what is around them take, generously
# What decides where models and data sets of the Hub are found.
_HUB = ("HF_HOME", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "HF_ENDPOINT")


def slurm(
    study: StudyFile,
    output: Output = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Processes that share the study.")
    ] = 8,
    time: Annotated[
        str, typer.Option(metavar="TIME", help="Limit of each job, such as 4h.")
    ] = "4h",
    gpus: Annotated[bool, typer.Option("--gpus", help="Ask for a GPU a job.")] = False,
    script: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to; STUDY.sbatch by default."),
    ] = None,
    trust_remote_code: Trust = False,
) -> None:
    """Write the script of a SLURM job array that runs a study; read it, and submit it."""
    from ..start.paper import Paper, Wanted
    from ..start.times import hours_of
    from ..study import read_study

    seconds = math.ceil(3600 * hours_of(time, "--time"))
    spec = read_study(study, trust_remote_code=trust_remote_code)
    paper = Paper.of(spec)
    held = paper.bytes_held(Wanted.of(spec))
    folder = folder_of(study, output).absolute()
    text = job_script(
        study.absolute(),
        folder,
        jobs=jobs,
        seconds=seconds,
        held=held,
        gpus=gpus,
        trusts=trust_remote_code,
        variables=os.environ,
        python=sys.executable,
    )
    place = script or study.with_suffix(".sbatch")
    try:
        with place.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ArgumentError(
            f"{place} is there already; take it away, or give --script FILE."
        ) from None
    typer.echo(f"script: {place}\nsubmit it: sbatch {quote(str(place))}")


def job_script(
    study: Path,
    folder: Path,
    *,
    jobs: int,
    seconds: int,
    held: int,
    gpus: bool,
    trusts: bool,
    variables: Mapping[str, str],
    python: str,
) -> str:
    """Return the script.

    Parameters
    ----------
    study, folder
        Absolute paths, as every node sees them.
    jobs, seconds, held
        Processes, and for each of them the limit of time and the bytes that it holds.
    gpus, trusts
        Whether each asks for a GPU, and runs code of the model on the Hub.
    variables, python
        The environment and the interpreter that the jobs are to use.

    Raises
    ------
    ArgumentError
        If a path has a line break, which no line of such a script can hold.

    Examples
    --------
    >>> text = job_script(
    ...     Path("/s/a.toml"),
    ...     Path("/s/a"),
    ...     jobs=2,
    ...     seconds=7200,
    ...     held=10**9,
    ...     gpus=False,
    ...     trusts=False,
    ...     variables={},
    ...     python="/env/bin/python",
    ... )
    >>> [line for line in text.splitlines() if "--time" in line or "--mem" in line]
    ['#SBATCH --mem=3G', '#SBATCH --time=0-02:00:00']
    """
    for path in (study, folder):
        if "\n" in str(path):
            raise ArgumentError(f"{str(path)!r} has a line break; take another folder.")
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    name = re.sub(r"[^\w.-]", "-", study.stem)  # SLURM reads quotes there
    asked = [
        f"--array=1-{jobs}",
        f"--job-name={name}",
        "--cpus-per-task=1",
        f"--mem={math.ceil((held + _LIBRARIES) / 1e9)}G",
        f"--time={days}-{hours:02}:{minutes:02}:{rest:02}",
        *(["--gres=gpu:1"] if gpus else []),
    ]
    kept = [f"export {n}={quote(variables[n])}" for n in _HUB if variables.get(n)]
    command = ["ontogeny", "run", str(study), "--output", str(folder), "--quiet"]
    if trusts:
        command.append("--trust-remote-code")
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in asked),
        "# Every job has the same line: they share the study, and what one finished stays. Submit",
        "# it again where jobs met their limit of time.",
        *_activation(variables, python),
        *kept,
        "export OMP_NUM_THREADS=1",
        f"cd {quote(str(Path.cwd()))}",
        join(command),
    ]
    return "\n".join(lines) + "\n"


def _activation(variables: Mapping[str, str], python: str) -> list[str]:
    """Return the lines after which a job's command is that of this environment."""
    place = Path(python).parent
    name = variables.get("CONDA_PREFIX", "")
    if name and place == Path(name) / "bin" and (conda := variables.get("CONDA_EXE")):
        profile = Path(conda).parent.parent / "etc/profile.d/conda.sh"
        return [f"source {quote(str(profile))}", f"conda activate {quote(name)}"]
    if (place / "activate").is_file():
        return [f"source {quote(str(place / 'activate'))}"]
    return [f'export PATH={quote(str(place))}:"$PATH"']
