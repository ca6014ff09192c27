"""Which libraries a command loads: half of what a short one takes is their import."""

import re
import subprocess
import sys

import pytest

from helpers.command import call
from helpers.study_examples import developing, record
from helpers.text_models import save_tokenizer, with_tokenizer
from ontogeny.tasks import train_tokenizer

STUDY = """
[trajectory]
folder = "run"

[inputs]
files = ["texts.txt"]
max_length = 12

[[observables]]
kind = "loss"
"""
OF_CONCEPTS = """
[[observables]]
kind = "concepts"
extractor = "svd"
n_concepts = 2
layers = "*.mlp"

[[observables]]
kind = "learned-concepts"
n_concepts = 2
layers = "*.mlp"
"""
OF_FITS = ("scipy.stats", "scipy.optimize", "sklearn", "matplotlib")
OF_MODELS = ("torch", "transformers", "huggingface_hub")
OF_RESULTS = ("zarr", "ontogeny.report.page")
UNUSED = (
    "transformers.modeling_utils",
    "peft",
    "datasets",
    "dask",
    "plotly",
    "accelerate",
)
OTHER_FEATURES = ("ontogeny.features.concepts.joint", "ontogeny.features.probes.probed")


@pytest.fixture(scope="module", autouse=True)
def own_notes(tmp_path_factory):
    """What the code of cells is, is noted for all processes of a user: others write there too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("notes")))
        yield


@pytest.fixture(scope="module")
def place(own_notes, tmp_path_factory):
    """A folder with a study file and its finished study."""
    folder = tmp_path_factory.mktemp("imports")
    texts = [f"a model learns to read {i} words of a text" for i in range(8)]
    (folder / "texts.txt").write_text("\n\n".join(texts))
    tokenizer = train_tokenizer(texts, 280)
    record(with_tokenizer(developing((0, 1, 2)), tokenizer), folder / "run")
    save_tokenizer(tokenizer, folder / "run")
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture(scope="module")
def finished(place):
    finish(place / "study.toml", place / "study")
    return place


def finish(file, folder):
    loaded(("run", file, "--output", folder, "--quiet"))


def loaded(*commands):
    """Return what each command says, and the modules that are loaded after it."""
    code = (
        "import sys\nfrom ontogeny.cli import main\n"
        "for words in CALLS:\n"
        "    try:\n        main(words)\n"
        "    except SystemExit as stop:\n        assert not stop.code\n"
        "    print('\\nmodules', *sys.modules)"
    )
    calls = [[str(word) for word in words] for words in commands]
    done = subprocess.run(
        [sys.executable, "-c", f"CALLS = {calls!r}\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    parts = re.findall(r"(.*?)\nmodules ([^\n]*)\n", done.stdout, re.S)
    return [(said + done.stderr, set(modules.split())) for said, modules in parts]


def test_what_is_finished_is_read_without_models_and_fits(finished, tmp_path):
    page = ("report", finished / "study", "--output", tmp_path / "page.html")
    ended = loaded(("claims", finished / "study"), page)
    assert len(ended) == 2
    for said, modules in ended:
        assert said.strip()
        assert not modules.intersection(OF_FITS + OF_MODELS)


def test_with_nothing_to_do_only_the_features_of_the_study_are_loaded(finished):
    """Models and texts are opened, as who has changed them is not known before."""
    command = ("run", finished / "study.toml", "--output", finished / "study")
    ((said, modules),) = loaded(command)
    assert "nothing to do: 3 cells" in said
    assert not modules.intersection(OF_FITS + OF_RESULTS + OTHER_FEATURES)
    assert "transformers.modeling_utils" not in modules


def test_with_nothing_to_do_no_concept_is_fitted(place):
    """What extractors inherit from scikit-learn loads scipy's statistics: an eighth of the time."""
    file = place / "concepts.toml"
    bundled = STUDY.replace(
        'files = ["texts.txt"]', 'bundled = "english-and-python"\nmax_texts = 40'
    )
    file.write_text(bundled + OF_CONCEPTS)
    finish(file, place / "concepts")
    ((said, modules),) = loaded(("run", file, "--output", place / "concepts"))
    assert "nothing to do" in said
    assert not modules.intersection(OF_FITS + OF_RESULTS + UNUSED)


def test_a_command_looks_rarely_for_cycles(capsys, monkeypatch):
    """Half a million objects of libraries were looked through each time they grew by a quarter."""
    thresholds = []
    monkeypatch.setattr("gc.set_threshold", lambda *given: thresholds.append(given))
    assert call(capsys, "--version")[0] == 0
    assert thresholds[0][0] >= 10_000
