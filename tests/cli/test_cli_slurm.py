"""The script of a job array: what it asks for, and that it runs in the environment it names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.slurm_study import write_study
from ontogeny.cli.batch import job_script
from ontogeny.cli.main import main
from ontogeny.errors import ArgumentError


def script(study, folder, python=sys.executable, variables=None, **options):
    asked = {
        "jobs": 3,
        "seconds": 5400,
        "held": 6_100_000_000,
        "gpus": False,
        "trusts": False,
    }
    asked |= options
    return job_script(study, folder, variables=variables or {}, python=python, **asked)


def environment(folder, line):
    """A folder that looks like an environment, whose command writes what it was given."""
    place = folder / "an env" / "bin"
    place.mkdir(parents=True)
    command = place / "ontogeny"
    command.write_text(
        '#!/bin/bash\nprintf "%s\\n" "$MARK" "$PWD" "$@" > "$HOME/told"\n'
    )
    command.chmod(0o755)
    if line:
        (place / "activate").write_text(f'PATH="{place}:$PATH"\nexport MARK={line}\n')
    return place / "python"


def told(text, home):
    (home / "job.sh").write_text(text)
    bare = {"HOME": str(home), "PATH": "/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": "1"}
    subprocess.run(["bash", home / "job.sh"], env=bare, check=True)
    return (home / "told").read_text().splitlines()


def test_the_resources_are_those_that_were_asked_for():
    text = script(Path("/s/my run.toml"), Path("/s/out"), gpus=True, seconds=93_784)
    asked = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert asked == [
        "#SBATCH --array=1-3",
        "#SBATCH --job-name=my-run",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --mem=9G",
        "#SBATCH --time=1-02:03:04",
        "#SBATCH --gres=gpu:1",
    ]
    # SLURM reads no line of this kind after the first command.
    assert text.startswith("#!/bin/bash\n#SBATCH")
    assert "--gres" not in script(Path("/s/a.toml"), Path("/s/out"))


def test_a_name_holds_nothing_that_slurm_reads_as_a_quote():
    text = script(Path('/s/it\'s "my" $tudy.toml'), Path("/s/a"), trusts=True)
    assert "\n#SBATCH --job-name=it-s--my---tudy\n" in text
    assert text.endswith(" --quiet --trust-remote-code\n")


@pytest.mark.parametrize("line", ["activated", ""])
def test_jobs_run_the_command_of_the_environment_that_wrote_them(line, tmp_path):
    study = tmp_path / "it's my $tudy.toml"
    folder = tmp_path / "out put"
    python = environment(tmp_path, line)
    lines = told(script(study, folder, str(python)), tmp_path)
    assert lines == [
        line,
        str(Path.cwd()),
        "run",
        str(study),
        "--output",
        str(folder),
        "--quiet",
    ]


def test_conda_is_activated_by_its_own_profile(tmp_path):
    root, home = tmp_path / "conda", tmp_path / "conda/envs/mine"
    python = environment(tmp_path, "")
    (root / "etc/profile.d").mkdir(parents=True)
    (home).mkdir(parents=True)
    (home / "bin").symlink_to(python.parent)
    (root / "etc/profile.d/conda.sh").write_text(
        f'conda() {{ export MARK="$2"; PATH="{home}/bin:$PATH"; }}\n'
    )
    variables = {"CONDA_PREFIX": str(home), "CONDA_EXE": str(root / "bin/conda")}
    text = script(
        tmp_path / "a.toml", tmp_path / "a", str(home / "bin/python"), variables
    )
    assert told(text, tmp_path)[0] == str(home)


def test_where_the_hub_is_found_is_handed_on():
    variables = {"HF_HOME": "/big disk/hf", "HF_HUB_OFFLINE": "1", "SECRET": "x"}
    text = script(Path("/s/a.toml"), Path("/s/a"), variables=variables)
    assert "export HF_HOME='/big disk/hf'\nexport HF_HUB_OFFLINE=1\n" in text
    assert "SECRET" not in text


def test_a_path_that_no_line_can_hold_is_refused():
    with pytest.raises(ArgumentError, match="line break"):
        script(Path("/s/a\nrm -r x.toml"), Path("/s/a"))


@pytest.mark.slow
def test_the_command_writes_a_script_that_computes_the_study(tmp_path, monkeypatch):
    path = write_study(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["slurm", str(path), "--jobs", "2", "--time", "30m", "--output", "out"])
    assert ended.value.code == 0
    text = path.with_suffix(".sbatch").read_text()
    assert "#SBATCH --array=1-2\n" in text and "--time=0-00:30:00" in text
    job = path.with_suffix(".sbatch")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(["bash", job], check=True, env=variables)
    assert (tmp_path / "out" / "result.zarr").is_dir()


def test_a_script_is_never_written_over(tmp_path, capsys):
    path = write_study(tmp_path)
    path.with_suffix(".sbatch").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        main(["slurm", str(path)])
    assert ended.value.code == 1
    assert "is there already" in capsys.readouterr().err
    assert path.with_suffix(".sbatch").read_text() == "mine"
