"""What is said of results stands in the catalogue alone, and nothing decides by reading it."""

import ast
import re
from pathlib import Path

import pytest

import ontogeny
from helpers.read_names import READS, reads_a_name
from ontogeny.claims import Certainty, Kind, Reason

ROOT = Path(ontogeny.__file__).parent

# Words by which a template of a finding is known.
FINDING = re.compile(
    r"\b(was|were|is|are) (learned|forgotten|memorised|damaged|born|gained|lost)\b"
    r"|\bnot shown (to|above|below)\b|\bbeyond (its motion|controls)\b|\babove chance\b|\bgot worse\b"
    r"|\bimproved by learning\b"
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
    "words/catalogue/concepts.py": "the catalogue of concepts of tokens",
    "words/catalogue/learned_concepts.py": "the catalogue of concepts beyond the token",
    "words/catalogue/sentences.py": "the catalogue itself",
    "words/measured.py": "the catalogue of numbers",
    "words/catalogue/page.py": "the catalogue of headings and tables",
    "words/row_variables.py": NAMES,
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
    "words/catalogue/captions.py": "what marks mean",
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


@pytest.fixture(scope="module")
def modules():
    """The name and the syntax tree of each module of the library."""
    return [
        (path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8")))
        for path in sorted(ROOT.rglob("*.py"))
    ]


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


def test_no_module_but_the_catalogue_holds_a_template_of_a_finding(modules):
    holding = {
        name
        for name, tree in modules
        if name.startswith(ROOMS) and any(map(FINDING.search, texts(tree)))
    }
    assert holding == {*MAY}


def test_templates_of_the_page_hold_none_either():
    holding = [
        path.name
        for path in sorted((ROOT / "report" / "templates").glob("*.j2"))
        if FINDING.search(path.read_text(encoding="utf-8"))
    ]
    assert holding == []


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
def test_nothing_decides_by_reading_a_sentence(modules, room):
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules
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


# Where names are read, and why that decides nothing by what is said.
KEYS = "names of variables, and keys of a closed list"
MAY_READ = {
    "claims/places.py": KEYS,
    "features/concepts/describe/names.py": "words of the texts",
    "features/concepts/vocabulary_rows.py": KEYS,
    "features/probes/labelled_words.py": "labels of words, from a file",
    "report/chart/canvas.py": "where a text is broken into lines",
    "report/concepts/learned.py": "a list of words that is stored as one text",
    "report/concepts/lives.py": KEYS,
    "report/figures/panels.py": KEYS,
    "report/figures/tables.py": "whether a head names its units",
    "report/run_words.py": "marks that the page fills",
    "summary/figures.py": "names of files",
    "summary/noise.py": "names of refits, as cells have them",
    "words/headings.py": KEYS,
    "words/names.py": "units that are those of another variable, as declared",
    "words/runs.py": KEYS,
    "words/story.py": KEYS,
    "words/subjects.py": KEYS,
}


def readers(modules, rooms):
    return {
        name
        for name, tree in modules
        if name.startswith(rooms) and any(map(reads_a_name, ast.walk(tree)))
    }


def test_names_are_not_taken_apart(modules):
    """A page decided by "share", "similar" and "last " in what a variable was called."""
    rooms = tuple(f"{room}/" for room in ROOMS if room != "cli")
    assert readers(modules, rooms) == {*MAY_READ}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('f"({units})" if units.startswith("share") else units', 1),
        ("kind = 'similarity' if 'similar' in title else 'distance'", 1),
        ("parts = [part for part in label.split('·')]", 1),
        ("counts = Counter(name.rpartition(' · ')[2] for name in names)", 1),
        ("title = title.split(' (')[0]", 1),
        ("lines = [h for h in handles if h.get_label() == 'audit finding']", 1),
        ("rows = [label.replace(layer, name) for label in labels]", 1),
        ("claim.subject.label == Reference.UNIFORM", 0),
        ("claim.kind is Kind.PASSES", 0),
        ("name.startswith('x_')", 0),
    ],
)
def test_the_search_for_names_finds_what_it_looks_for(code, count):
    assert sum(map(reads_a_name, ast.walk(ast.parse(code)))) == count


# Rooms where numbers are computed: what they say of a result is a claim.
COMPUTING = ("features", "observables", "summary", "comparison", "claims")

# Texts with a value in them may stand there in these places, which say nothing of a result.
OF_RUNS = "how runs and their settings differ, and what of them is compared"
STATES = "what is being done, for the progress of a command"
NAMED = "names of variables, rows and figures"
WHY = "why one item cannot be measured, as data"
WRITES = {
    "claims/expectations.py": "what a command prints of an expectation",
    "comparison/clock.py": "an error",
    "comparison/comparing.py": OF_RUNS,
    "comparison/concepts/aligned.py": OF_RUNS,
    "comparison/concepts/node.py": STATES,
    "comparison/concepts/shared.py": STATES,
    "comparison/concepts/views.py": STATES,
    "comparison/differences.py": OF_RUNS,
    "comparison/layers.py": OF_RUNS,
    "comparison/nodes.py": OF_RUNS,
    "comparison/one_run.py": "messages of the audit",
    "comparison/overview.py": "captions and notes of the section",
    "features/abilities/choice_keys.py": "an error",
    "features/abilities/examples.py": WHY,
    "features/abilities/token_texts.py": WHY,
    "features/activations/dimensions.py": NAMED,
    "features/circuits/heads.py": NAMED,
    "features/directions/dictionary_files.py": "an error",
    "features/directions/dictionary_lives.py": "an error, and names of variables",
    "features/probes/pieces_of_words.py": WHY,
    "features/predictions/loss.py": NAMED,
    "features/predictions/training_texts.py": NAMED,
    "features/wordspace/concepts.py": WHY,
    "features/wordspace/text_statistics.py": "an error",
    "observables/arguments.py": "what an argument may be",
    "observables/catalogued.py": "the catalogue of observables",
    "observables/own.py": "an error",
    "observables/registry.py": "an error",
    "observables/rotations.py": NAMED,
    "summary/figures.py": "what a shade is",
}
# Of rooms that draw: their sentences stand in `words.catalogue.captions`.
DRAWS = {
    "report/choosing.py": "an error",
    "report/concepts/learned.py": "Python to copy",
    "report/notebook/index.py": "an error",
    "report/page/html.py": "Python to copy, and what the page may load",
    "report/page/payload.py": "the name of an array",
    "report/run_words.py": "Python to copy",
}
QUIET = {"caption", "care", "definition", "null", "title", "symbol"}
MARKUP = re.compile(r'</?[a-z][^>]*>?|[\w-]+="[^"]*"?')
LOGS = ("log", "logger", "warnings")


def writes(node):
    """Give the texts of at least three words and a value that are no error, log or caption."""
    if isinstance(node, ast.Raise):
        return
    if isinstance(node, ast.keyword) and node.arg in QUIET:
        return
    if isinstance(node, ast.Call):
        called = ast.unparse(node.func)
        if called.split(".")[0] in LOGS or called.endswith(("Error", "Section")):
            return
    if isinstance(node, ast.JoinedStr):
        parts = [p.value for p in node.values if isinstance(p, ast.Constant)]
        text = MARKUP.sub("", re.sub(r"\{\w*\}", "", " ".join(parts)))
        is_filled = len(parts) < len(node.values) and text.count(" ") > 1
        if is_filled and len(re.findall("[a-z]{2,}", text)) >= 3:
            yield text
        return
    for child in ast.iter_child_nodes(node):
        yield from writes(child)


@pytest.mark.parametrize(
    ("rooms", "may"), [(COMPUTING, WRITES), (("report", "atlas"), DRAWS)]
)
def test_no_sentence_is_written_where_numbers_are_computed_or_drawn(
    modules, rooms, may
):
    places = tuple(f"{room}/" for room in rooms)
    holding = {
        name for name, tree in modules if name.startswith(places) and [*writes(tree)]
    }
    assert holding == {*may}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("said = f'{n} of the layers moved farthest'", 1),
        ("raise ArgumentError(f'{n} of the layers moved farthest')", 0),
        ("Curves(caption=f'{n} of the layers moved farthest')", 0),
        ("log.info(f'{n} of the layers moved farthest')", 0),
        ("name = f'{n} rows'", 0),
        ("""f'<circle class="{style}" cx="{x}" cy="{y}" r="{radius}"/>'""", 0),
        ("""f'<p class="{style}">{n} of the layers moved farthest</p>'""", 1),
    ],
)
def test_the_search_for_sentences_finds_what_it_looks_for(code, count):
    assert len([*writes(ast.parse(code))]) == count


def test_observables_of_the_library_claim_and_write_nothing(modules):
    hooks = {
        name
        for name, tree in modules
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "words"
        if [each.arg for each in node.args.args] == ["self", "data", "nodes"]
    }
    assert hooks == {"observables/base.py"}


def test_no_words_of_the_catalogue_are_exchanged_after_they_were_chosen(modules):
    """Headings were templates in which ``.replace`` put other words."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in modules
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in (*READS, "replace", "removesuffix", "removeprefix")
        and any(
            isinstance(part, ast.Name)
            and part.id in ("HEADINGS", "SENTENCES", "MEASURED")
            for part in ast.walk(node.func.value)
        )
    ]
    assert found == []


def covers(node, words):
    """Whether a dict goes over all members of an enumeration."""
    if not isinstance(node, ast.Dict) or len(node.keys) < len(words):
        return False
    keys = filter(None, node.keys)
    names = {ast.unparse(key).rpartition(".")[2] for key in keys}
    return {word.name for word in words} <= names


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (Certainty, {"claims/vocabulary.py", "words/catalogue/sentences.py"}),
        (Kind, {"claims/vocabulary.py"}),
        (Reason, {"words/catalogue/sentences.py"}),
    ],
)
def test_a_new_word_of_claims_is_added_where_the_words_are_listed_alone(
    modules, words, files
):
    """Beside these files one touches what decides it: at most three in all."""
    holding = {
        name
        for name, tree in modules
        if any(covers(node, words) for node in ast.walk(tree))
    }
    assert holding == files
