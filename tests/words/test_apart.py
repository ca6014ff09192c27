"""What is said of results stands in the catalogue alone, and nothing decides by reading it."""

import ast
import re
from pathlib import Path

import pytest

import ontogeny

ROOT = Path(ontogeny.__file__).parent

# Words by which a template of a finding is known.
FINDING = re.compile(
    r"\b(was|were|is|are) (learned|forgotten|memorised|damaged|born|gained|lost)\b"
    r"|\bnot shown (to|above|below)\b|\bbeyond (its )?motion\b|\babove chance\b|\bgot worse\b"
    r"|\bis open\b|\bare open\b|\bno more than (motion|controls)\b|\bas control runs do\b"
)

# Rooms that make what is read of results; others write plans, messages and files.
ROOMS = (
    "words",
    "report",
    "comparison",
    "features",
    "summary",
    "claims",
    "cli",
    "atlas",
)

# Where such words may stand, and why.
NAMES = "names of variables"
NOTES = "notes of a section, which hold of every result"
MAY = {
    "words/catalogue.py": "the catalogue itself",
    "words/measured.py": "the catalogue of numbers",
    "words/rows.py": NAMES,
    "claims/table.py": NAMES,
    "claims/vocabulary.py": "the closed list of kinds",
    "cli/claims.py": "help of an option",
    "comparison/comparing.py": "what a filled mark means",
    "comparison/concepts/node.py": "titles of figures",
    "comparison/figures.py": "what an open mark means",
    "features/abilities/groups.py": NAMES,
    "features/circuits/in_context.py": NOTES,
    "features/concepts/joint.py": NOTES,
    "features/concepts/joint_lives.py": NAMES,
    "features/concepts/vocabulary.py": NOTES,
    "features/fine_tuning/concept_change.py": NOTES,
    "features/labelled/accuracy.py": NOTES,
    "features/labelled/permuted_labels.py": NAMES,
    "features/predictions/loss.py": NOTES,
    "features/predictions/renamed_words.py": NAMES,
    "features/predictions/token_losses.py": NOTES,
    "features/learned_concepts/declared.py": NOTES,
    "features/predictions/trained_start.py": NAMES,
    "features/predictions/training_texts.py": "the question that a measure answers",
    "features/wordspace/text_statistics.py": NOTES,
    "report/chart/marks.py": "what an open mark means",
    "report/concepts/lives.py": "a choice of the list of concepts",
    "report/files/overview.py": "captions of figures",
    "report/first_screen/numbers.py": "what a number counts",
}

# What holds a sentence that was made in `words`.
SENTENCES = {"text", "lead", "heading", "sentence", "sentences"}
MAKERS = {
    "said",
    "state_words",
    "heading_of",
    "heading_of_runs",
    "spoken",
    "journey",
    "facts",
}
READS = {
    "startswith",
    "endswith",
    "find",
    "index",
    "count",
    "partition",
    "rpartition",
    "split",
}


def modules():
    for path in sorted(ROOT.rglob("*.py")):
        yield (
            path.relative_to(ROOT).as_posix(),
            ast.parse(path.read_text(encoding="utf-8")),
        )


def documentation(tree):
    """The nodes of docstrings, which readers of code read."""
    found = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for child in body if isinstance(body, list) else ():
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                found.add(child.value)
    return found


def texts(tree):
    left_out = documentation(tree)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node not in left_out
        ):
            yield node.value


def test_no_module_but_the_catalogue_holds_a_template_of_a_finding():
    holding = {
        name
        for name, tree in modules()
        if name.startswith(ROOMS) and any(map(FINDING.search, texts(tree)))
    }
    assert holding == {*MAY}


def is_sentence(node):
    """Whether an expression gives a sentence: it holds one, or a call makes it."""
    if isinstance(node, ast.Attribute):
        return node.attr in SENTENCES and not isinstance(
            node.value, ast.Name | ast.Call
        )
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in MAKERS
    return False


def decides(node):
    """Whether an expression decides by what a sentence says."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in READS and is_sentence(node.func.value)
    if isinstance(node, ast.Compare) and any(isinstance(op, ast.In) for op in node.ops):
        return any(map(is_sentence, node.comparators))
    return False


def decisions(tree):
    return filter(decides, ast.walk(tree))


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_decides_by_reading_a_sentence(room):
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules()
        if name.startswith(f"{room}/")
        for node in decisions(tree)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("said(claims).text.startswith('Loss')", 0),
        ("self.content.heading.endswith('open')", 1),
        ("state_words(row).split()[0]", 1),
        ("'open' in state_words(row)", 1),
        ("'x' in names", 0),
    ],
)
def test_the_search_finds_what_it_looks_for(code, count):
    assert len([*decisions(ast.parse(code))]) == count
