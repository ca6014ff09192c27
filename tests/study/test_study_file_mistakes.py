"""Every key of a study file that is misspelt or of a wrong kind is refused before anything runs."""

import dataclasses
import typing

import pytest

import ontogeny as og
from helpers.study_examples import tiny_model
from ontogeny.errors import ArgumentError
from ontogeny.observables import registry
from ontogeny.observables.arguments import check_kind
from ontogeny.study import file, input_tables, read_study
from ontogeny.tasks import train_tokenizer

TABLES = {
    "trajectory": file._TRAJECTORY,
    "inputs": input_tables._INPUTS,
    "options": file._OPTIONS,
    "trajectory.select": file._SELECT,
}
KEYS = [(table, key) for table, keys in TABLES.items() for key in keys]
FIELDS = [
    (kind, field.name)
    for kind, cls in registry.kinds().items()
    for field in dataclasses.fields(cls)
]
REQUIRED = {"layers": "model.layers.*.mlp", "marker_ids": [8]}
VALUES = ['"8"', "2.5", "true", "3", "[[1]]", "{ a = 1 }", "nan"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run with a tokenizer and one labelled file."""
    folder = tmp_path_factory.mktemp("mistakes")
    tokenizer = train_tokenizer(["a good film and a bad one"] * 20, 280)
    recorder = og.Recorder(folder / "run", every=lambda step: True, tokenizer=tokenizer)
    recorder(0, tiny_model(vocabulary=len(tokenizer)))
    return folder


def _study(place, table, **values):
    """Return the study of a file in which `values` of one table, as TOML, replace its own."""
    tables = {
        "trajectory": {"folder": '"run"'},
        "inputs": {"texts": '["a good film"]'},
        "options": {"device": '"cpu"'},
        "[observables]": {"kind": '"loss"'},
    }
    if table == "trajectory.select":
        inner = ", ".join(f"{key} = {value}" for key, value in values.items())
        table, values = "trajectory", {"select": f"{{ {inner} }}"}
    tables[table] |= values
    lines = []
    for name, own in tables.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in own.items())]
    (place / "study.toml").write_text("\n".join(lines))
    return read_study(place / "study.toml")


@pytest.mark.parametrize(("table", "key"), KEYS)
def test_a_misspelt_key_is_refused_with_the_near_one(place, table, key):
    wrong = key[:-1] + "x" + key[-1]
    with pytest.raises(ArgumentError, match=f"has no key '{wrong}'.*Did you mean '"):
        _study(place, table, **{wrong: 1})


def _of_another_kind(hint):
    """Return the values, as TOML, that a key of this kind must refuse."""
    import tomllib

    def refused(text):
        try:
            check_kind("", "key", tomllib.loads(f"v = {text}")["v"], hint)
        except ArgumentError:
            return True
        return False

    return [text for text in VALUES if refused(text)]


# What stands for a data set is looked at with its file: test_readers_splits.py.
@pytest.mark.parametrize(
    ("table", "key"), [pair for pair in KEYS if pair[1] != "dataset"]
)
def test_a_value_of_another_kind_is_refused_by_its_key(place, table, key):
    hint = TABLES[table][key]
    wrong = VALUES[1:4] if hint is typing.Any else _of_another_kind(hint)
    assert hint is typing.Any or len(wrong) >= 4
    for text in wrong:
        with pytest.raises(ArgumentError, match=f"{key} must be|{key}.* must be a"):
            _study(place, table, **{key: text})


@pytest.mark.parametrize(("kind", "name"), FIELDS)
def test_an_option_of_an_observable_is_checked_by_name_and_kind(kind, name):
    cls = registry.kinds()[kind]
    hint = typing.get_type_hints(cls)[name]
    needed = {
        f.name: REQUIRED.get(f.name, "loss")
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    with pytest.raises(
        ArgumentError, match=f"has no argument '{name}x'.*Did you mean '"
    ):
        registry.make(kind, **needed, **{f"{name}x": 1})
    wrong = [
        v
        for v in ("8", 2.5, True, 3, [[1]], {"a": 1}, float("nan"))
        if _refused(v, hint)
    ]
    assert len(wrong) >= 4
    for value in wrong:
        with pytest.raises(ArgumentError, match=rf"{kind}': {name} must be "):
            registry.make(kind, **{**needed, name: value})


def _refused(value, hint):
    if typing.get_origin(hint) is tuple and not isinstance(value, list):
        hint = typing.get_args(hint)[0]  # a lone value is taken for a list of one
    try:
        check_kind("", "key", value, hint)
    except ArgumentError:
        return True
    return False


@pytest.mark.parametrize(
    ("value", "hint", "fits"),
    [
        (3, float, True),
        (3.0, int, False),
        (True, int, False),
        (1, bool, False),
        (None, int | None, True),
        (["a"], str | tuple[str, ...], True),
        ([["a"]], str | tuple[str, ...], False),
        ([1, 2], tuple[int, int], True),
        ([1, 2, 3], tuple[int, int], False),
        ({"a": 1}, typing.Mapping[str, int], True),
        (float("nan"), float, False),
        (float("inf"), float, True),
    ],
)
def test_kinds(value, hint, fits):
    assert _refused(value, hint) is not fits


def test_a_negative_seed_and_a_misspelt_input_set_are_refused(place):
    with pytest.raises(
        ArgumentError, match="random_state must be a whole number of at least 0"
    ):
        _study(place, "[observables]", random_state=-3)
    with pytest.raises(
        ArgumentError, match=r"on must be one of 'text'; got 'tetx'.*'text'\?"
    ):
        _study(place, "[observables]", on='"tetx"').plan()


@pytest.mark.parametrize(("key", "value"), [("steps", 2), ("count", -1)])
def test_too_few_controls_are_refused_before_checkpoints_are_opened(
    tmp_path, key, value
):
    tables = {"trajectory": {"folder": "none"}, "inputs": {"bundled": "english"}}
    with pytest.raises(ArgumentError, match=f"controls.{key} must be a whole number"):
        file.make_study(
            {**tables, "observables": [], "controls": {key: value}}, tmp_path
        )
