"""A digest of code changes with what computes, and with nothing else."""

import pytest

from ontogeny.code.source import EFFECTS, read_source

BEFORE = '''
"""A module."""
import numpy as np

LIMIT = 3


def norm(values, power=2):
    """Return the norm."""
    # The root.
    if power < 1:
        raise ValueError(f"power must be 1 or more; got {power}.")
    return np.sum(np.abs(values) ** power) ** (1 / power)


class Sum:
    """A sum."""

    start: float = 0.0
    title = "the sum"

    def of(self, values):
        """Return it."""
        return self.start + sum(values)
'''


def _digests(text):
    return {
        name: d.digest for name, d in read_source(text.encode()).definitions.items()
    }


def _changed(old, new):
    assert old in BEFORE
    before, after = _digests(BEFORE), _digests(BEFORE.replace(old, new))
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A module."""', '"""Another text."""'),
        ('"""Return the norm."""', '"""Return the p-norm.\n\n    Of numbers.\n    """'),
        ('        """Return it."""\n', ""),
        ("# The root.", "# Its root, of sums."),
        ("(values, power=2)", "(values: np.ndarray, power: int = 2) -> float"),
        ("(values, power=2)", "(\n    values,\n    power=2,\n)"),
        ("power must be 1 or more; got", "give a power from 1 on, not"),
        ("LIMIT = 3", "LIMIT = (3)"),
        ('"the sum"', "'the sum'"),
    ],
)
def test_words_formatting_and_annotations_do_not_count(old, new):
    assert _changed(old, new) == set()


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("power=2", "power=3", {"norm"}),
        ("1 / power", "2 / power", {"norm"}),
        ("raise ValueError", "raise TypeError", {"norm"}),
        ("got {power}", "got {power + 1}", {"norm"}),
        ("LIMIT = 3", "LIMIT = 4", {"LIMIT"}),
        ("start: float = 0.0", "start: float = 1.0", {"Sum"}),
        ("start: float", "start: int", {"Sum"}),
        ('"the sum"', '"a sum"', {"Sum.title"}),
        ("self.start +", "2 * self.start +", {"Sum.of"}),
        ("class Sum:", "class Sum(float):", {"Sum"}),
        ("LIMIT = 3", "LIMIT = 3\nnp.seterr('raise')", {EFFECTS}),
    ],
)
def test_what_computes_counts_where_it_is_defined(old, new, changed):
    assert _changed(old, new) == changed


def test_what_is_registered_without_a_name_counts_with_its_class_or_its_file():
    """Nobody names it: importing the file, or using the class, is what reaches it."""
    text = (
        "class Sum:\n    @of.register\n    def _(self, x): return {}\n\n"
        "@size.register\ndef _(x): return {}\n"
    )
    before = _digests(text.format(1, 1))
    for numbers, changed in (((2, 1), "Sum"), ((1, 2), EFFECTS)):
        after = _digests(text.format(*numbers))
        differing = {name for name in before if before[name] != after[name]}
        assert differing - {"_"} == {changed}


def test_a_file_that_is_no_python_counts_by_its_bytes():
    one, other = read_source(b"def ("), read_source(b"def [")
    assert one.definitions.keys() == {EFFECTS}
    assert one.definitions[EFFECTS].digest != other.definitions[EFFECTS].digest


def test_imports_are_found_in_functions_and_not_in_what_is_for_types():
    source = read_source(
        b"from typing import TYPE_CHECKING\n"
        b"import a.b, c as d\n"
        b"if TYPE_CHECKING:\n    from e import f\n"
        b"def g():\n    from ..h import i as j\n    return j(d.k)"
    )
    assert source.imports == {
        "TYPE_CHECKING": [(0, "typing", "TYPE_CHECKING")],
        "a": [(0, "a", None)],
        "d": [(0, "c", None)],
        "j": [(2, "h", "i")],
    }
    assert (2, "h", "i") not in source.loads and (0, "a.b", None) in source.loads
    assert source.definitions["g"].names == ["j", "d.k"]


def test_it_comes_back_from_plain_data():
    source = read_source(BEFORE.encode())
    assert type(source).of_json(source.as_json()) == source
