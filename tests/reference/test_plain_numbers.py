"""Every number on the page of ten odd models beside a plain implementation of its definition."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import ontogeny as og
from reference.odd_models import MODELS, OddModel, write_run
from reference.plain.page_of_examples import PageOfExamples
from reference.plain.page_of_layers import PageOfLayers
from reference.plain.page_of_texts import PageOfTexts
from reference.plain.run import Run
from reference.studied import studied

HERE = Path(__file__).parent
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
OF_LAYERS = ("activation-decay", "effective-dimensions", "similarity", "concepts-svd")

# Draws that count where a confidence is above a random number or an edge: of half precision they
# are other ones where it is rounded otherwise.
OF_EDGES = r"calibration_error_(replicates|calibrated.*)"

# Patterns of node and variable, and why these numbers are not compared.
NOT_COMPARED = {
    r"[^:]*:status": "says that a cell is there",
    r"[^:]*:((gap|right|wrong|answer)_text|gap_(before|after)|prompt)": "words",
    r"(minimal-pairs|choices):(word_right|word_wrong|cluster|clusters|group_of_.*)": "names of "
    "groups, and which examples go together",
    r"predictions:answer_at_(first|last)|[^:]*:piece_text": "words",
    r"[^:]*:(row_.*|progress|distinct|half_step.*|settled_step|first_value|last_value)": "a row of "
    "the chart is made of its quantity, which is compared; verdicts have tests of their own",
    r"[^:]*:(p_.*|smallest_p|noise_known|moved|only_memory|can_learn|better_sign|own_value|lead|"
    r"change_floor|outside|not_improved|judgeable|changed|beyond|learned|lost|reason|"
    r"own_change_test)": "a verdict of a row",
    r"loss:loss_calibrated(_of_text)?": "compared apart, below",
    r"loss:(loss_matched.*|loss_inverse_temperature)": "by what a verdict is made; tests of scale "
    "and of preferences have it",
    r"loss:loss_(trained_start|p_learned|learned_from)": "verdicts on numbers that are compared",
    r"[^:]*:(loss_below|loss_half|reached_step|reached_random|closest_step)_.*(low|high)": "ends "
    "over resampled texts of a step that is compared",
    r"token-losses:text_number": "which texts are shown is drawn",
    r"concepts-svd:(iterations|converged)": "says how it was computed",
    r"concepts-svd:code_coordinates": "codes in a basis that any other turned one could stand for",
    r"(activation-decay|similarity):.*_floor": "noise of a change towards the reference step",
    r"(minimal-pairs|choices):accuracy.*_(low|high|floor|stderr|p_changed|reach)": "intervals "
    "and tests over clusters",
    r"writing:.*": "what is written; its tests ask for one token at a time",
    r"choices:accuracy.*_chance": "what one answer everywhere reaches",
    r"(minimal-pairs|choices):(above_.*|liking|change_.*)": "verdicts over groups",
    r"calibration:calibration_error_(stderr|low|high|floor)": "spread of the replicates, which are "
    "compared",
    r"effective-dimensions:.*_null": "the mean of ten random samples",
}


QUICK = ("tied", "windows")  # models whose page `make test` compares as well


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in MODELS
    ],
)
def test_page_holds_the_numbers_of_a_plain_implementation(name, tmp_path):
    odd = MODELS[name]
    write_run(odd, tmp_path)
    tree, left_out = studied(odd, tmp_path)
    assert left_out <= odd.lacks
    layers, maps = _labels(tree, OF_LAYERS), _labels(tree, ["attention-entropy"])
    run = Run(odd, tmp_path, layers, maps)
    pages = (PageOfTexts(run), PageOfExamples(run), PageOfLayers(run))
    lines, reasons = [], set()
    for node, child in tree.children.items():
        data = child.to_dataset()
        found = _plain(pages, node, data)
        lines += unaccounted(node, data, found, reasons)
        if odd.dtype == torch.bfloat16:
            found = {n: v for n, v in found.items() if not re.fullmatch(OF_EDGES, n)}
        if node == "choices":
            found = {n: v for n, v in found.items() if not n.endswith("_chance")}
        lines += [
            f"{node}: {line}" for line in differences(found, data, TOLERANCE[odd.dtype])
        ]
    assert not lines, "\n".join(lines)
    if not odd.lacks:
        assert reasons == set(NOT_COMPARED)


def _labels(tree, nodes):
    found = [
        tree[node].layer.values.tolist() for node in nodes if node in tree.children
    ]
    return list(dict.fromkeys(str(label) for labels in found for label in labels))


def _plain(pages, node, data):
    """Return the plain numbers of a node: each a tuple of dimensions and values."""
    method = node.replace("-", "_")
    (page,) = [page for page in pages if hasattr(page, method)]
    return getattr(page, method)(data)


def differences(found, data, tolerance):
    """Return a line for each variable of the page that is not the plain one."""
    lines = []
    for name, (dims, values) in found.items():
        if name not in data:
            lines.append(f"{name} is not on the page")
            continue
        given = data[name].transpose(*dims).values.astype(float)
        plain = np.asarray(values, dtype=float)
        size = np.abs(plain[np.isfinite(plain)]).max(initial=0.0)
        if given.shape != plain.shape:
            lines.append(f"{name} has the shape {given.shape}, plain {plain.shape}")
        elif not np.allclose(given, plain, tolerance, tolerance * size, equal_nan=True):
            apart = np.where(np.isfinite(given - plain), np.abs(given - plain), 0)
            at = np.unravel_index(apart.argmax(), apart.shape)
            lines.append(
                f"{name}{[*map(int, at)]} is {given[at]:.6g}, plain {plain[at]:.6g}"
            )
    return lines


def unaccounted(node, data, found, reasons):
    """Return a line for each number that is neither compared nor left out for a reason."""
    lines = []
    for name in data.data_vars:
        fitting = {
            pattern
            for pattern in NOT_COMPARED
            if re.fullmatch(pattern, f"{node}:{name}")
        }
        reasons |= fitting
        if name not in found and not fitting:
            lines.append(f"{node}: {name} is not compared")
    return lines


def _of_loss(odd, folder):
    """Return the node of the loss alone, and the plain numbers of it."""
    write_run(odd, folder)
    own = {"model": odd.build} if odd.is_own else {}
    run = Run(odd, folder, (), ())
    inputs = og.Inputs.from_texts(
        (folder / "texts.txt").read_text().splitlines(), run.tokenizer
    )
    trajectory = og.Trajectory.from_folder(folder, **own)
    loss = og.observables.Loss(objective="causal")
    tree = (
        og.Study(trajectory, inputs, [loss], controls=0, noise=0)
        .run(folder / "study")
        .tree
    )
    return tree["loss"].to_dataset(), PageOfTexts(run)


def test_loss_at_the_best_temperature_is_the_smallest_of_any(tmp_path):
    data, page = _of_loss(MODELS["weight-norm"], tmp_path)
    # Of all texts together it is the smallest; of one text it moves with the temperature.
    allowed = {"loss_calibrated": 1e-3, "loss_calibrated_of_text": 0.05}
    for name, (dims, values) in page.calibrated().items():
        given = data[name].transpose(*dims)
        np.testing.assert_allclose(given, values, rtol=0, atol=allowed[name])


def test_loss_of_a_model_that_gives_back_what_it_padded(tmp_path):
    data, page = _of_loss(OddModel("PadsAndKeeps"), tmp_path)
    assert differences(page.loss(data), data, 1e-4) == []


def test_a_number_that_is_off_is_found():
    import xarray as xr

    data = xr.Dataset({"x": ("step", [1.0, 2.0]), "y": 3.0})
    assert differences({"x": (("step",), [1.0, 2.0001])}, data, 1e-4) == []
    assert len(differences({"x": (("step",), [1.0, 2.001])}, data, 1e-4)) == 1
    assert len(differences({"x": (("step",), [1.0, np.nan])}, data, 1e-4)) == 1
    assert len(differences({"z": ((), 1.0)}, data, 1e-4)) == 1


@pytest.mark.parametrize(
    "file", sorted([*HERE.glob("plain/*.py"), *HERE.glob("odd_*.py")])
)
def test_plain_side_imports_nothing_of_the_library(file):
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module)
    allowed = {
        "numpy",
        "scipy",
        "torch",
        "transformers",
        "tokenizers",
        "safetensors",
        "reference",
    }
    standard = {"collections", "dataclasses", "json", "pathlib"}
    assert {name.partition(".")[0] for name in names} <= allowed | standard
    assert not [name for name in names if name.startswith("reference.studied")]
