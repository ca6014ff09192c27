import inspect
import json
import os
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ontogeny.errors import ArgumentError
from ontogeny.tasks import python_documentation, split_texts
from ontogeny.tasks.corpus import paragraphs

DESCRIBE = """
import json, sys
from ontogeny.tasks import python_documentation
before = set(sys.modules)
texts = python_documentation()
new = sorted(set(sys.modules) - before)
print(json.dumps([new, texts]))
"""


@pytest.fixture(scope="module")
def documentation():
    return python_documentation()


def test_documentation_has_the_size_of_a_small_corpus(documentation):
    assert 1.2e6 < sum(map(len, documentation)) < 2.5e6


def test_documentation_is_distinct_single_lines(documentation):
    assert len(set(documentation)) == len(documentation)
    assert all(text == " ".join(text.split()) and text for text in documentation)


def test_documentation_holds_docstrings_and_help_topics(documentation):
    corpus = "\n".join(documentation)
    first_paragraph = inspect.getdoc(textwrap.TextWrapper).split("\n\n")[0]
    assert " ".join(first_paragraph.split()) in corpus
    assert '"if" statement is used for conditional execution' in corpus


@pytest.mark.slow
def test_documentation_is_the_same_in_a_new_process_and_imports_no_documented_module(
    documentation,
):
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run(
        [sys.executable, "-c", DESCRIBE],
        env=environment,
        capture_output=True,
        check=True,
    )
    imported, texts = json.loads(done.stdout)
    assert imported == ["pydoc_data", "pydoc_data.topics"]
    assert texts == documentation


def test_missing_documentation_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydoc_data.topics", None)
    with pytest.raises(Exception, match="without pydoc_data"):
        python_documentation()


def test_headings_join_what_follows_and_a_last_fragment_what_precedes():
    body = "The for statement is used to iterate over the elements."
    assert paragraphs(f"Loops\n*****\n\n{body}\n\nSee also.") == [
        f"Loops {body} See also."
    ]
    assert paragraphs("Only this.") == ["Only this."]
    assert paragraphs(" \n\n ") == []


@given(st.text(alphabet="ab c\n=", max_size=300))
def test_paragraphs_keep_every_word_in_order(document):
    words = [
        w
        for line in document.split("\n")
        if set(line) - set("= ")
        for w in line.split()
    ]
    assert " ".join(paragraphs(document)).split() == words


@given(
    st.lists(st.integers(), min_size=2, max_size=40, unique=True),
    st.floats(0.01, 0.99),
    st.integers(0, 5),
)
def test_split_parts_the_texts_in_order(numbers, fraction, seed):
    texts = [str(n) for n in numbers]
    kept, heldout = split_texts(texts, fraction, seed)
    assert sorted(kept + heldout) == sorted(texts)
    assert kept == [t for t in texts if t in set(kept)]
    assert kept and heldout and abs(len(heldout) - fraction * len(texts)) <= 1
    assert split_texts(texts, fraction, seed) == (kept, heldout)


def test_split_depends_on_the_seed():
    texts = [str(i) for i in range(100)]
    assert split_texts(texts, 0.5, 0) != split_texts(texts, 0.5, 1)


@pytest.mark.parametrize(
    ("texts", "fraction", "named"), [(["a", "b"], 0, "fraction"), (["a"], 0.5, "texts")]
)
def test_split_refuses(texts, fraction, named):
    with pytest.raises(ArgumentError, match=named):
        split_texts(texts, fraction)
