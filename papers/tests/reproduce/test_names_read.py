"""Recipes of papers decide by fields, and not by what a value is called."""

import ast
from pathlib import Path

import ontogeny_papers
from helpers.read_names import reads_a_name

# Where names are read, and why that decides nothing by what is said.
MAY_READ = {
    "capture/targets.py": "a key of a closed list",
    "reproduce/concepts/approach.py": "a key of a closed list",
    "semantics/scores.py": "words of a corpus",
    "semantics/supports.py": "words of a corpus",
    "semantics/word_classes.py": "words of a corpus",
}


def test_names_are_not_taken_apart():
    root = Path(ontogeny_papers.__file__).parent
    reading = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(map(reads_a_name, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert reading == {*MAY_READ}
