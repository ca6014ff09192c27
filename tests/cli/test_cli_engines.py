"""Executors of installed packages: the one of the guide, with a stand-in for its engine."""

import types
from contextlib import contextmanager
from importlib.metadata import EntryPoint

import pytest

from helpers.paths import GUIDES
from helpers.slurm_study import assert_same, write_study
from ontogeny.cli import executors
from ontogeny.cli.executors import executor_for
from ontogeny.cli.main import main
from ontogeny.errors import ArgumentError


class Engine(types.ModuleType):
    """What the guide uses of Ray: tasks are computed when somebody asks for them."""

    def __init__(self):
        super().__init__("ray")
        self.told = []

    def init(self, **_):
        self.told.append("init")

    def shutdown(self):
        self.told.append("shutdown")

    def remote(self, **_):
        def wrap(function):
            made = types.SimpleNamespace()
            made.remote = lambda *arguments: lambda: function(*arguments)
            self.told.append("task")
            return made

        return wrap

    def get(self, reference):
        return reference()


@pytest.fixture
def engine(monkeypatch):
    engine = Engine()
    monkeypatch.setitem(__import__("sys").modules, "ray", engine)
    return engine


@pytest.fixture
def declared(monkeypatch, engine):
    """The class of the guide, as a package declares it."""
    text = (GUIDES / "slurm.md").read_text(encoding="utf-8")
    (code,) = (b for b in text.split("```python\n")[1:] if b.startswith("import ray"))
    package = types.ModuleType("engines")
    exec(code.split("```")[0], vars(package))
    package.broken = lambda: 3
    package.mute = type("Mute", (package.Ray,), {"__enter__": lambda self: None})
    package.context = lambda: contextmanager(lambda: iter([package.Ray()]))()
    monkeypatch.setitem(__import__("sys").modules, "engines", package)
    entries = [
        EntryPoint(name, f"engines:{name}", executors.GROUP)
        for name in ("Ray", "broken", "gone", "mute", "context")
    ]
    monkeypatch.setattr(executors, "entry_points", lambda group: entries)


@pytest.mark.slow
def test_the_executor_of_the_guide_computes_a_study(declared, engine, tmp_path):
    path = write_study(tmp_path)
    for folder, options in (("with", ["--executor", "Ray"]), ("alone", [])):
        place = str(tmp_path / folder)
        with pytest.raises(SystemExit) as ended:
            main(["run", str(path), "--output", place, "--quiet", *options])
        assert ended.value.code == 0
    assert_same(tmp_path / "with", tmp_path / "alone")
    assert engine.told[0] == "init" and engine.told[-1] == "shutdown"
    assert engine.told.count("task") >= 6


def test_an_executor_that_is_not_there_is_refused_with_those_that_are(declared):
    with (
        pytest.raises(
            ArgumentError, match="got 'rya', and Ray, broken, context, gone, mute"
        ),
        executor_for(1, None, installed="rya"),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("broken", "has no submit"),
        ("gone", "cannot be loaded"),
        ("mute", "has no submit.*a NoneType"),
    ],
)
def test_one_that_is_none_is_refused(declared, name, why):
    with pytest.raises(ArgumentError, match=why), executor_for(1, None, installed=name):
        pass


def test_an_executor_may_be_what_a_context_gives(declared):
    with executor_for(1, None, installed="context") as executor:
        assert executor.submit(pow, 2, 3).result() == 8


def test_one_engine_at_a_time():
    with (
        pytest.raises(ArgumentError, match="one of --workers, --scheduler"),
        executor_for(4, None, installed="Ray"),
    ):
        pass
