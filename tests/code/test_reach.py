"""What code reaches, in a small package: a change there changes its digests, no other does."""

import shutil
import sys

import pytest

from helpers import warm_process
from ontogeny.code.kept import Kept
from ontogeny.code.modules import Modules
from ontogeny.code.reach import Reach, digests

FILES = {
    "__init__.py": "from .lazy import __getattr__",
    "lazy.py": """
        import importlib
        def __getattr__(name):
            if name != "late":
                raise AttributeError(name)
            return importlib.import_module("pkg.later").late
    """,
    "later.py": "def late(x): return x + 1",
    "start.py": """
        from __future__ import annotations
        from typing import TYPE_CHECKING
        import pkg
        import numpy as np
        from . import first, steps
        from .registry import TABLE
        from .shapes import Shape, area
        if TYPE_CHECKING:
            from .unused import helper

        class Root:
            def observe(self, shape: Shape):
                from .inside import inner
                total = steps.total(shape) + inner() + pkg.late(1) + first.one()
                return total + area(shape) + TABLE["entry"]() + np.sum([1])

            def words(self):
                return first.sentence()
    """,
    "first.py": """
        from .second import two
        def one(): return two()
        def sentence(): return "One text."
        def other(): return 1
    """,
    "second.py": "from . import third\ndef two(): return third.three() + third.LIMIT",
    "third.py": "LIMIT = 3\ndef three(): return 3\ndef four(): return 4",
    "steps.py": "from .third import *\ndef total(s): return s.size() + four()",
    "inside.py": """
        from pathlib import Path
        TEXT = Path(__file__).with_name("table.txt")
        def inner(): return len(TEXT.read_text())
    """,
    "table.txt": "some data",
    "registry.py": """
        TABLE = {}
        def entered(function):
            TABLE[function.__name__] = function
            return function
    """,
    "entries.py": """
        from .registry import entered
        @entered
        def entry(): return 5
    """,
    "shapes.py": """
        from . import entries
        class Shape:
            def size(self): return 0
            def colour(self): return "red"
        class Square(Shape):
            def size(self): return 4
        def area(shape): return getattr(shape, "width")
        class Wide(Square):
            @property
            def width(self): return 2
    """,
    "unused.py": "def helper(): return 0",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A folder with the package, which is imported anew."""
    from textwrap import dedent

    for name, text in FILES.items():
        path = tmp_path / "pkg" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "pkg"]:
        monkeypatch.delitem(sys.modules, name)
    return tmp_path / "pkg"


def _reach(root="pkg.start:Root.observe", **options):
    modules = Modules(("pkg",))
    reach = Reach(modules, Kept().source, **options)
    reach.visit(root)
    return reach, digests(reach, lambda path: modules.name(path))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("start.py", "np.sum([1])", "np.sum([2])"),
        ("third.py", "return 3", "return 33"),  # three imports away
        ("third.py", "LIMIT = 3", "LIMIT = 4"),
        (
            "third.py",
            "return 4",
            "return 44",
        ),  # of a module all of whose names are imported
        ("inside.py", "len(", "2 * len("),  # imported by a function
        ("table.txt", "some", "other"),
        ("later.py", "x + 1", "x + 2"),  # loaded when it is first asked for
        ("entries.py", "return 5", "return 6"),  # entered in a table by its decorator
        (
            "shapes.py",
            "return 4",
            "return 9",
        ),  # of a class that inherits from one that is named
        ("shapes.py", "return 2", "return 3"),  # looked up by a text
        (
            "first.py",
            "def one():",
            "import numpy\nnumpy.seterr(all='raise')\ndef one():",
        ),
        (
            "start.py",
            "from . import first, steps",
            "from . import steps, second as first",
        ),
    ],
)
def test_what_is_reached_counts(package, file, old, new):
    (package / "second.py").write_text(
        (package / "second.py").read_text() + "\ndef one(): return 1"
    )
    _, before = _reach()
    path = package / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert _reach()[1] != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("first.py", "One text.", "Another text."),  # only `words` says it
        ("first.py", "def other(): return 1", "def other(): return 2"),
        ("shapes.py", '"red"', '"blue"'),
        ("unused.py", "return 0", "return 1"),
        (
            "third.py",
            "def three(): return 3",
            "def three():\n    '''Three.'''\n    return 3  # it",
        ),
    ],
)
def test_what_is_not_reached_does_not(package, file, old, new):
    _, before = _reach()
    path = package / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert _reach()[1] == before


def test_another_root_reaches_what_it_names(package):
    _, before = _reach("pkg.start:Root.words")
    path = package / "first.py"
    path.write_text(path.read_text().replace("One text.", "Another text."))
    assert _reach("pkg.start:Root.words")[1] != before


def test_it_names_the_libraries_that_are_used(package):
    reach, _ = _reach()
    assert {name.partition(".")[0] for name in reach.outside} >= {"numpy", "pathlib"}
    assert not {name.partition(".")[0] for name in _reach("pkg.third:three")[0].outside}


def test_heirs_of_known_classes_and_unused_classes_are_left_out(package):
    def names(**options):
        return {place.name for place in _reach(**options)[0].visited}

    assert {"Shape.size", "Square.size", "Wide.width"} <= names()
    assert not {"Square", "Wide"} & names(known=("pkg.shapes:Shape",))
    assert not {"Shape", "Square"} & names(unused=("pkg.shapes:Shape",))


def test_a_package_that_imports_by_names_made_at_run_time_is_reached_whole(package):
    path = package / "third.py"
    path.write_text(
        "import importlib\ndef three(): return importlib.import_module('pkg.' + 'unused').helper()"
    )
    _, before = _reach("pkg.third:three")
    (package / "unused.py").write_text("def helper(): return 7")
    assert _reach("pkg.third:three")[1] != before


def test_methods_that_another_library_calls_are_reached(package):
    (package / "second.py").write_text("import torch\nclass Base(torch.nn.Module): ...")
    (package / "third.py").write_text(
        "import enum\n"
        "from .second import Base\n"
        "class Layer(Base):\n    def forward(self, x): return x\n"
        "class Kind(enum.Enum):\n    RED = 1\n"
        "class Other:\n    def forward(self, x): return x\n"
    )
    names = {place.name for place in _reach("pkg.third")[0].visited}
    assert {"Layer.forward", "Kind.RED"} <= names
    reach, _ = _reach("pkg.third:Other")
    assert "Other.forward" not in {place.name for place in reach.visited}


def test_a_class_that_is_made_at_run_time_is_reached_by_its_lines(package):
    made = type("Made", (), {"__module__": "pkg.third", "f": lambda self: 1})
    reach, found = _reach(made)
    assert [place.name for place in reach.visited] == ["Made"]
    other = type("Made", (), {"__module__": "pkg.third", "f": lambda self: 2})
    assert _reach(other)[1] != found


def test_a_name_that_is_not_there_is_an_error(package):
    with pytest.raises(LookupError, match="has no nothing"):
        _reach("pkg.third:nothing")


def test_what_was_found_is_kept_for_other_processes_and_damage_costs_time_alone(
    package,
):
    first, second, third = Kept(), Kept(), Kept()
    path = str(package / "third.py")
    source = first.source(path)
    first.put("key", [1, 2])
    first.save()
    file = package.parent / "cache" / "ontogeny" / "code.json"
    assert second.get("key") == [1, 2] and second.source(path) == source
    file.write_bytes(file.read_bytes().replace(b"[1, 2]", b"[1, 3]"))
    second.save()
    from ontogeny.code import kept

    kept._kept.cache_clear()
    assert third.get("key") is None and third.source(path) == source


def test_what_another_process_keeps_meanwhile_stays(package):
    """Each of two that worked at once wrote what it knew, and a third found half of it again."""
    ours = Kept()
    assert ours.get("theirs") is None
    begin = "from ontogeny.code.kept import Kept; theirs = Kept()"
    write = f"{begin}; theirs.put('theirs', 1); theirs.save()"
    assert warm_process.run(["-c", write]).returncode == 0
    ours.put("ours", 2)
    ours.save()
    assert Kept().get("theirs") == 1 and Kept().get("ours") == 2


def test_a_copy_goes_on_by_itself_and_reaches_the_same(package):
    whole, expected = _reach()
    begun = Reach(Modules(("pkg",)), Kept().source)
    begun.visit("pkg.third:three")
    before = dict(begun.visited)
    copy = begun.copy(Modules(("pkg",)), Kept().source)
    copy.visit("pkg.start:Root.observe")
    modules = Modules(("pkg",))
    assert digests(copy, lambda path: modules.name(path)) == expected
    assert begun.visited == before and copy.files == whole.files


def test_what_was_found_is_found_anew_when_any_file_that_finds_it_changes(
    tmp_path, monkeypatch
):
    # A list of these files lacked two that came from splitting the others.
    from ontogeny.code import kept

    readers = shutil.copytree(kept._READERS, tmp_path / "code")
    monkeypatch.setattr(kept, "_READERS", readers)
    seen = set()
    for path in [None, *sorted(readers.glob("*.py"))]:
        if path is not None:
            path.write_text(f"{path.read_text('utf-8')}\nCHANGED = 1\n", "utf-8")
        seen.add(kept._reader.__wrapped__())
    assert len(seen) == 1 + len([*readers.glob("*.py")])
