"""What the repository's own files say twice is the same in both places."""

import gzip
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import tomllib

import pytest
import yaml

import ontogeny as og
from helpers.paths import ROOT

PINNED = dict(
    line.split("==")
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    if "==" in line
)


def read(path):
    text = (ROOT / path).read_text("utf-8")
    return tomllib.loads(text) if path.endswith(".toml") else yaml.safe_load(text)


def test_hooks_use_the_pinned_releases():
    hooks = [
        hook
        for repo in read(".pre-commit-config.yaml")["repos"]
        for hook in repo["hooks"]
    ]
    wanted = [
        w.split("==") for hook in hooks for w in hook.get("additional_dependencies", [])
    ]
    assert wanted and all(PINNED[name] == release for name, release in wanted)


def test_the_workflow_runs_every_step_on_every_python():
    matrix = read(".github/workflows/ci.yml")["jobs"]["check"]["strategy"]["matrix"]
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    (names,) = re.findall(r"^    ([a-z |]+)\) \"\$step\" ;;$", run, re.MULTILINE)
    names = names.split(" | ")
    bodies = re.findall(
        r"^(?:beside|everything)\(\) {\n(.*?)\n}", run, re.DOTALL | re.MULTILINE
    )
    called = re.findall(r"^  ([a-z]+)\b", "\n".join(bodies), re.MULTILINE)
    assert sorted(step for step in called if step in names) == sorted(names)
    assert (
        sorted(" ".join(matrix["steps"]).split()) == sorted(names)
        and called[-1] == "tests"
    )
    classifiers = read("pyproject.toml")["project"]["classifiers"]
    versions = [
        c.rpartition(" ")[2] for c in classifiers if re.search(r":: 3\.\d+$", c)
    ]
    assert matrix["python"] == versions


# The run in the foreground fails at once; the one with noise goes on until the test lets it end.
KERNELS = """#!/usr/bin/env bash
[ -n "${ONTOGENY_TEST_NOISE:-}" ] || exit 1
until [ -f "$PLACE/go" ]; do sleep 0.05; done
echo "left running" >&"$PIPE"
"""


@pytest.mark.skipif(os.name != "posix", reason="runs a script of the shell")
def test_numerical_tests_that_fail_leave_no_process_behind(tmp_path):
    python = tmp_path / "python"
    python.write_text(KERNELS)
    python.chmod(0o755)
    read_end, write_end = os.pipe()
    env = {**os.environ, "PLACE": str(tmp_path), "PIPE": str(write_end)}
    env.pop("ONTOGENY_TEST_NOISE", None)
    command = [ROOT / ".ci" / "kernels", python]
    assert subprocess.run(command, env=env, pass_fds=[write_end]).returncode == 1
    (tmp_path / "go").touch()
    os.close(write_end)
    with os.fdopen(read_end) as pipe:  # at its end when no process holds the other side
        assert pipe.read() == ""


# The wheel, which is made beside the rest, goes on until the test lets it end.
WHEEL = """#!/usr/bin/env bash
touch "$PLACE/begun"
until [ -f "$PLACE/go" ]; do sleep 0.05; done
echo "left running" >&"$PIPE"
"""
MAKE = """#!/usr/bin/env bash
until [ -f "$PLACE/begun" ]; do sleep 0.05; done
exit 1
"""


@pytest.mark.skipif(os.name != "posix", reason="runs a script of the shell")
def test_a_step_that_fails_ends_what_runs_beside_it(tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    for name, code in ((".ci/wheel", WHEEL), ("make", MAKE)):
        (tmp_path / name).write_text(code)
        (tmp_path / name).chmod(0o755)
    read_end, write_end = os.pipe()
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    env = {**os.environ, "PLACE": str(tmp_path), "PIPE": str(write_end), "PATH": path}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=env, pass_fds=[write_end])
    (tmp_path / "go").touch()
    os.close(write_end)
    with os.fdopen(read_end) as pipe:  # at its end when no process holds the other side
        assert done.returncode != 0 and pipe.read() == ""


def test_every_dependency_is_pinned():
    project = read("pyproject.toml")["project"]
    extras = project["optional-dependencies"]
    names = [*project["dependencies"], *extras["dask"], *extras["dev"], *extras["docs"]]
    pinned = {name.lower() for name in PINNED}
    assert {re.match(r"[\w.-]+", name)[0].lower() for name in names} <= pinned


def test_the_citation_names_this_version():
    citation = read("CITATION.cff")
    assert citation["version"] == og.__version__
    assert len(citation["references"]) == 3


@pytest.mark.parametrize("kind", ["bug", "feature", "question"])
def test_issue_forms_have_fields_with_a_label(kind):
    form = read(f".github/ISSUE_TEMPLATE/{kind}.yml")
    assert form["name"] and form["description"]
    assert all(field["id"] and field["attributes"]["label"] for field in form["body"])


RELEASE = """[project]
version = "1.2.3"
[project.urls]
source = "https://example.org"
"""
RELEASED_FILES = {
    "src/ontogeny/_version.py": '__version__ = "1.2.3"',
    "pyproject.toml": RELEASE,
    "papers/pyproject.toml": RELEASE,
    "CITATION.cff": "version: 1.2.3",
    "CHANGELOG.md": "## 1.2.3, today",
}


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("pyproject.toml", "[project]", r"pyproject.toml has no \[project.urls\]"),
        (
            "papers/pyproject.toml",
            RELEASE.replace("1.2.3", "1.2"),
            "papers.* version 1.2, not",
        ),
        (
            "src/ontogeny/_version.py",
            '__version__ = "1.3.0"',
            "tag is v1.2.3.* says 1.3.0",
        ),
        ("CITATION.cff", "version: 1.2.2", "CITATION.cff does not"),
        ("CHANGELOG.md", "## Unreleased", "no section 1.2.3"),
    ],
)
def test_a_release_that_the_files_contradict_is_refused(tmp_path, path, text, said):
    faults = runpy.run_path(str(ROOT / ".ci" / "release.py"))["faults"]
    for name, content in RELEASED_FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    assert faults("v1.2.3", tmp_path) == []
    (tmp_path / path).write_text(text)
    assert re.search(said, "\n".join(faults("v1.2.3", tmp_path)))


def test_the_release_workflow_checks_the_tag_before_it_builds():
    jobs = read(".github/workflows/release.yml")["jobs"]
    commands = [step.get("run", "") for step in jobs["build"]["steps"]]
    check = next(i for i, command in enumerate(commands) if ".ci/release.py" in command)
    assert check < next(
        i for i, command in enumerate(commands) if "-m build" in command
    )
    assert jobs["publish"]["needs"] == "build"


def test_files_of_others_are_those_whose_origin_is_said():
    rows = re.findall(
        r"^\| `([^`]+)` \|.*\| `([0-9a-f]{64})` \|$",
        (ROOT / "docs" / "origins.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert len(rows) == 3
    for name, digest in rows:
        content = (ROOT / "src" / "ontogeny" / name).read_bytes()
        content = gzip.decompress(content) if name.endswith(".gz") else content
        assert hashlib.sha256(content).hexdigest() == digest, name
