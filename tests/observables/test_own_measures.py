"""A function of the user's own as a measure: values, what makes it stale, and its names."""

from pathlib import Path

import numpy as np
import pytest
import torch

import ontogeny as og
from helpers.family_models import build
from ontogeny.errors import ArgumentError
from ontogeny.observables import MinimalPairs, OwnMeasure, make_own
from ontogeny.own_code import load, reason
from ontogeny.start.examples import examples_of
from ontogeny.study.checks import check_observables
from ontogeny.study.folder.code import code_of_cell

MINE = '''"""Mine."""
from pathlib import Path
import torch

WORDS = Path(__file__).with_name("words.txt").read_text()


def score(model, texts):
    """Norm of the embedding of the first token."""
    weight = model.get_input_embeddings().weight
    return weight[torch.tensor(texts.ids[:, 0])].norm(dim=1)
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "words.txt").write_text("cat")
    return tmp_path


def lengths(model, texts):
    return texts.lengths


def inputs(count=12):
    rng = np.random.default_rng(0)
    return og.Inputs.from_tokens([rng.integers(5, 60, 4 + i % 5) for i in range(count)])


def test_a_function_of_a_file_is_a_measure_with_noise_rows_and_figures(folder):
    models = {step: build("gpt2", seed=step) for step in (0, 1, 2)}
    function, texts = load("mine.py:score", folder), inputs()
    study = og.Study(
        og.Trajectory.from_models(models), texts, [function, lengths], device="cpu"
    )
    result = study.run(folder / "study", progress=False)
    data = result["score"]
    for step, model in models.items():
        weight = model.get_input_embeddings().weight
        own = (
            weight[torch.tensor(texts.ids[:, 0])].norm(dim=1).detach().double().numpy()
        )
        assert float(data.value.sel(step=step)) == pytest.approx(own.mean(), rel=1e-6)
        stderr = own.std(ddof=1) / np.sqrt(len(own))
        assert float(data.value_stderr.sel(step=step)) == pytest.approx(
            stderr, rel=1e-5
        )
    assert data.value.attrs["long_name"] == "norm of the embedding of the first token"
    assert list(data.row.values) == ["score"] and '"curves"' in data.attrs["figures"]
    assert float(result["lengths"].value[0]) == texts.lengths.mean()


def test_its_file_and_those_it_names_are_watched(folder):
    def code():
        measure = OwnMeasure(load("mine.py:score", folder))
        assert [path.name for path in measure.files_read()] == ["words.txt"]
        return code_of_cell("StepCell", measure, measure.needs())

    first = code()
    (folder / "mine.py").write_text(MINE.replace("norm(dim=1)", "sum(dim=1)"))
    assert code() != first


def test_a_study_file_and_the_command_name_it(folder):
    tables, said = examples_of([f"{folder}/mine.py:score"], folder, None, None)
    assert tables == [{"kind": f"{folder}/mine.py:score"}]
    assert said == [f"{folder}/mine.py:score: one number for each text"]
    measure = make_own("mine.py:score", load("mine.py:score", folder), better="higher")
    assert (measure.name, measure.quantities[0].better) == ("score", "higher")
    with pytest.raises(ArgumentError, match=r"defines no 'scores'; it has .*score"):
        examples_of([f"{folder}/mine.py:scores"], folder, None, None)


def test_a_function_that_does_not_give_one_number_for_each_text_is_named(folder):
    def total(model, texts):
        return 1.0

    study = og.Study(
        og.Trajectory.from_models({0: build("gpt2")}), inputs(), total, device="cpu"
    )
    with pytest.warns(
        og.errors.StudyWarning, match="total must return one number for each of 12"
    ):
        study.run(folder / "study", progress=False, keep_going=True)


@pytest.mark.parametrize(
    ("place", "named"),
    [
        (
            "ipykernel_4711/2938471.py",
            Path(__file__).name,
        ),  # what the cell was called by
        ("ipykernel_notes/mine.py", "mine.py"),
        ("mine.py", "mine.py"),
    ],
)
def test_a_failure_names_the_line_of_a_file_that_is_no_cell_of_a_notebook(
    tmp_path, place, named
):
    code = compile("1 / 0", str(tmp_path / place), "exec")
    with pytest.raises(ZeroDivisionError) as error:
        exec(code, {"__name__": "__main__"})
    assert reason(error.value).startswith(
        f"ZeroDivisionError: division by zero ({named}, line "
    )


def test_two_of_one_kind_are_called_by_their_files(tmp_path):
    files = []
    for name in ("past tense", "plural"):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("right,wrong\nhe is,he are\n")
    both = [MinimalPairs(str(file)) for file in files]
    labelled = check_observables([*both, OwnMeasure(lengths)])
    names = [observable.name for observable in labelled]
    assert names == ["minimal-pairs-past-tense", "minimal-pairs-plural", "lengths"]
    with pytest.raises(
        ArgumentError, match="two observables are called 'minimal-pairs'"
    ):
        check_observables([MinimalPairs(), MinimalPairs()])
