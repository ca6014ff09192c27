"""What an audit finds, and that it finds nothing else."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import nn

import ontogeny.trajectory.audit as audit_module
from ontogeny import Recorder, Trajectory
from ontogeny.errors import CheckpointError
from ontogeny.trajectory import Findings
from ontogeny.trajectory.audit import holes
from ontogeny.trajectory.audit.digests import duplicate_groups
from ontogeny.trajectory.findings import Finding

CONFIG = {"architectures": ["Toy"], "hidden_size": 2, "transformers_version": "5.0"}
TOKENIZER = {"model": {"vocab": {"a": 0, "b": 1}}, "truncation": None, "padding": None}


def write(folder, step, config=CONFIG, tokenizer=TOKENIZER, weights=None):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    tensors = {
        "weight": torch.full((2, 2), float(step if weights is None else weights))
    }
    save_file(tensors, path / "model.safetensors")
    if config is not None:
        (path / "config.json").write_text(json.dumps(config))
    if tokenizer is not None:
        (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    return path


def audit(folder):
    return [
        (f.kind, f.certainty, f.steps) for f in Trajectory.from_folder(folder).audit()
    ]


def test_exactly_the_repeated_and_the_missing_checkpoint_are_named(tmp_path):
    for step in (0, 100, 200, 300, 500, 600):
        write(tmp_path, step, weights=200 if step == 300 else None)
    assert audit(tmp_path) == [
        ("identical", "certain", (200, 300)),
        ("missing", "suspected", (400,)),
    ]
    message = str(Trajectory.from_folder(tmp_path).audit())
    assert "steps 200 and 300 hold the same weights, byte for byte" in message
    assert "step 400, in an otherwise evenly spaced stretch, is missing" in message


def test_groups_of_identical_checkpoints_are_told_apart(tmp_path):
    for step, weights in enumerate([1, 2, 1, 3, 2, 1, 4]):
        write(tmp_path, step, weights=weights)
    assert audit(tmp_path) == [
        ("identical", "certain", (0, 2, 5)),
        ("identical", "certain", (1, 4)),
    ]


def test_weights_that_differ_in_one_bit_are_not_identical(tmp_path):
    write(tmp_path, 1)
    other = write(tmp_path, 2, weights=1)
    tensors = load_file(other / "model.safetensors")
    tensors["weight"].view(torch.int32)[0, 0] ^= 1
    save_file(tensors, other / "model.safetensors")
    assert audit(tmp_path) == []


def test_not_a_number_and_infinity_are_named_with_their_tensor(tmp_path):
    for step in range(4):
        write(tmp_path, step)
    for step, value, dtype in (
        (1, torch.nan, torch.float32),
        (3, torch.inf, torch.bfloat16),
    ):
        tensors = {
            "good": torch.ones(3),
            "bad.weight": torch.tensor([1.0, value]).to(dtype),
        }
        save_file(tensors, tmp_path / f"checkpoint-{step}" / "model.safetensors")
    findings = [
        f for f in Trajectory.from_folder(tmp_path).audit() if f.kind == "non-finite"
    ]
    assert [(f.steps, f.message) for f in findings] == [
        ((1, 3), "steps 1 and 3 hold NaN or infinity in bad.weight")
    ]


def test_a_value_that_overflows_when_summed_is_finite(tmp_path):
    write(tmp_path, 0)
    largest = torch.full((4,), torch.finfo(torch.float32).max)
    save_file({"weight": largest}, tmp_path / "checkpoint-0" / "model.safetensors")
    assert audit(tmp_path) == []


def test_a_changed_tokenizer_is_found_and_not_used(tmp_path):
    for step in (0, 100, 200, 300):
        vocabulary = {"a": 0, "b": 1, **({"c": 2} if step >= 200 else {})}
        write(tmp_path, step, tokenizer={**TOKENIZER, "model": {"vocab": vocabulary}})
    assert audit(tmp_path) == [("tokenizer", "certain", (200,))]
    trajectory = Trajectory.from_folder(tmp_path)
    with pytest.raises(
        CheckpointError, match=r"tokenizer changes at step 200 \(tokenizer\.json\)"
    ):
        trajectory.tokenizer()
    assert Trajectory.from_folder(tmp_path, tokenizer="mine").tokenizer() == "mine"


def test_how_texts_were_last_cut_or_padded_is_no_change_of_tokenizer(tmp_path):
    write(tmp_path, 0)
    write(tmp_path, 1, tokenizer={**TOKENIZER, "truncation": {"max_length": 8}})
    write(tmp_path, 2, tokenizer=None)
    for step, side in ((0, "left"), (1, "right")):
        settings = {"padding_side": side, "tokenizer_class": "Toy"}
        # A run that went on from a checkpoint writes how it cut the texts before.
        if step:
            settings |= {
                "truncation_strategy": "longest_first",
                "pad_to_multiple_of": None,
            }
            settings |= {
                "pad_token_type_id": 0,
                "stride": 0,
                "truncation_side": "right",
            }
        (tmp_path / f"checkpoint-{step}" / "tokenizer_config.json").write_text(
            json.dumps(settings)
        )
    assert audit(tmp_path) == []


def test_a_changed_configuration_is_named_key_by_key(tmp_path):
    write(tmp_path, 0)
    write(
        tmp_path,
        1,
        config={**CONFIG, "transformers_version": "5.1", "_name_or_path": "x"},
    )
    write(tmp_path, 2, config={**CONFIG, "hidden_size": 4, "rope": {"theta": 1.0}})
    findings = Trajectory.from_folder(tmp_path).audit()
    assert [(f.kind, f.steps) for f in findings] == [("configuration", (2,))]
    assert "hidden_size 2 -> 4; rope (absent) -> " in findings[0].message


def test_old_and_new_names_of_the_dtype_are_the_same_configuration(tmp_path):
    write(tmp_path, 0, config={**CONFIG, "torch_dtype": "float32"})
    write(tmp_path, 1, config={**CONFIG, "dtype": "float32"})
    write(tmp_path, 2, config={**CONFIG, "dtype": "bfloat16"})
    assert audit(tmp_path) == [("configuration", "certain", (2,))]


def test_changed_shapes_are_found_without_any_configuration(tmp_path):
    for step in range(3):
        write(tmp_path, step, config=None)
    save_file(
        {"weight": torch.ones(3, 3)}, tmp_path / "checkpoint-2" / "model.safetensors"
    )
    assert audit(tmp_path) == [("configuration", "certain", (2,))]


def test_steps_of_the_recorders_schedule_are_missed_and_no_others(tmp_path):
    recorder, model = Recorder(tmp_path, total=200), nn.Linear(2, 2)
    for step in range(201):
        with torch.no_grad():
            model.weight += 1
        recorder(step, model)
    assert audit(tmp_path) == []
    steps = list(Trajectory.from_folder(tmp_path).steps)
    for step in (steps[2], steps[10]):
        shutil.rmtree(tmp_path / f"checkpoint-{step}")
    assert audit(tmp_path) == [("missing", "certain", (steps[2], steps[10]))]


def test_a_recorded_checkpoint_that_was_deleted_is_missed_whatever_the_schedule(
    tmp_path,
):
    recorder, model = (
        Recorder(tmp_path, every=lambda step: step in (1, 5, 6)),
        nn.Linear(2, 2),
    )
    for step in range(8):
        with torch.no_grad():
            model.weight += 1
        recorder(step, model)
    assert audit(tmp_path) == []
    shutil.rmtree(tmp_path / "checkpoint-5")
    assert audit(tmp_path) == [("missing", "certain", (5,))]


def test_a_selection_is_not_blamed_for_what_it_leaves_out(tmp_path):
    for step in range(0, 1001, 100):
        if step != 700:
            write(tmp_path, step)
    trajectory = Trajectory.from_folder(tmp_path)
    assert [f.steps for f in trajectory.select(count=4).audit()] == [(700,)]
    assert list(trajectory.select(stop=600).audit()) == []


@given(st.integers(1, 500), st.integers(6, 30), st.data())
def test_holes_are_exactly_the_steps_taken_out_of_an_even_grid(gap, count, data):
    grid = [gap * k for k in range(count)]
    gone = data.draw(st.sets(st.integers(2, count - 3), max_size=(count - 4) // 4))
    kept = [step for k, step in enumerate(grid) if k not in gone]
    expected = [grid[k] for k in sorted(gone)]
    found = holes(kept)
    # Where so much is gone that a wider grid fits as well, silence is right, a wrong step is not.
    assert found == expected or set(found) < set(expected)
    if len(gone) == 1:
        assert found == expected


@pytest.mark.parametrize(
    "steps",
    [
        [0],
        [0, 7],
        [0, *(2**k for k in range(15))],
        [0, *(2**k for k in range(10)), *range(1000, 20_000, 1000)],
        [*range(0, 1001, 100), 1043],
        [1, 10, 100, 1000],
        [0, 100, 200, 250, 400, 500, 600],
    ],
)
def test_usual_schedules_have_no_holes(steps):
    assert holes(steps) == []


def test_a_hole_in_the_even_part_of_a_log_schedule_is_found():
    steps = [0, *(2**k for k in range(10)), *range(1000, 20_000, 1000)]
    steps.remove(7000)
    assert holes(steps) == [7000]


@pytest.mark.parametrize("damage", ["cut", "gone", "configuration"])
def test_a_checkpoint_damaged_after_opening_is_a_finding_and_no_crash(tmp_path, damage):
    for step in range(4):
        write(tmp_path, step)
    trajectory = Trajectory.from_folder(tmp_path)
    weights = tmp_path / "checkpoint-2" / "model.safetensors"
    if damage == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "gone":
        weights.unlink()
    else:
        (tmp_path / "checkpoint-2" / "config.json").write_text("{")
    findings = trajectory.audit()
    assert [(f.kind, f.certainty, f.steps) for f in findings] == [
        ("unreadable", "certain", (2,))
    ]
    assert "checkpoint-2" in findings[0].message


def test_findings_are_a_sequence_with_records_that_json_takes():
    one = Finding("identical", "certain", (1, 2), "steps 1 and 2 hold the same weights")
    findings = Findings([one, Finding("temporary", "certain", (), "left")])
    assert len(findings) == 2 and findings[0] is one and findings[:1] == Findings([one])
    assert json.loads(json.dumps(findings.to_records()))[0] == {
        "kind": "identical",
        "certainty": "certain",
        "steps": [1, 2],
        "message": "steps 1 and 2 hold the same weights",
    }
    lines = str(findings).splitlines()
    assert lines[0] == "identical (certain): steps 1 and 2 hold the same weights"
    assert not Findings([]) and str(Findings([])) == "no findings"


def test_the_audit_uses_one_thread_and_leaves_their_number(tmp_path, monkeypatch):
    """With two on busy cores, that of SmolLM2-135M took 28 s of processor time in place of 8."""
    for step in range(2):
        write(tmp_path, step)
    numbers = []
    monkeypatch.setattr(
        audit_module,
        "non_finite",
        lambda _: numbers.append(torch.get_num_threads()) or [],
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        Trajectory.from_folder(tmp_path).audit()
        assert numbers == [1] and torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_files_of_the_same_content_under_other_names_are_the_same_weights():
    """As the Hub lists shards that were numbered anew."""
    listed = [
        {"model-1-of-2": "x", "model-2-of-2": "y"},
        {"model-1-of-3": "y", "model-3-of-3": "x"},
        {"model-1-of-2": "x", "model-2-of-2": "z"},
    ]
    checkpoints = [
        SimpleNamespace(step=step, file_digests=lambda files=files: files)
        for step, files in enumerate(listed)
    ]
    assert duplicate_groups(checkpoints) == [(0, 1)]
