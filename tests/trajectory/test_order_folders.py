"""Folders as users have them: opened in the right order, or refused with both readings."""

import json

import pytest
import torch
from safetensors.torch import save_file

from ontogeny import Trajectory
from ontogeny.cli import main
from ontogeny.errors import CheckpointError


def weights(seed=0):
    return {"w": torch.randn(4, 4, generator=torch.manual_seed(seed))}


def ran(*arguments):
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    return end.value.code


@pytest.fixture
def lightning(tmp_path):
    """A folder as Lightning writes it: the step stands in the files, the loss in the names."""
    for epoch, (step, loss) in enumerate([(900, 5.70), (1800, 4.95), (2700, 1.76)]):
        state = {"epoch": epoch, "global_step": step, "state_dict": weights(epoch)}
        torch.save(state, tmp_path / f"epoch={epoch}-val_loss={loss:.2f}.ckpt")
    torch.save(
        {"epoch": 2, "global_step": 2700, "state_dict": weights(2)},
        tmp_path / "last.ckpt",
    )
    return tmp_path


def test_files_are_ordered_by_what_they_hold_and_copies_are_named(lightning):
    run = Trajectory.from_folder(lightning)
    assert [(c.step, c.label[:7]) for c in run] == [
        (900, "epoch=0"),
        (1800, "epoch=1"),
        (2700, "epoch=2"),
    ]
    first, left = run.lines()
    assert first == "3 checkpoints, steps 900 to 2,700, by global_step in the files"
    assert left.startswith(
        "left out: last.ckpt (holds step 2700, as epoch=2-val_loss=1.76.ckpt"
    )
    (finding,) = run.audit()
    # With the reason of each.
    assert finding.kind == "unnumbered" and finding.message == left
    by_epoch = Trajectory.from_folder(lightning, step_from="epoch={}")
    assert by_epoch.steps.tolist() == [0, 1, 2]


def test_the_command_shows_what_would_be_taken(lightning, capsys):
    assert ran("steps", lightning, "--exclude", "last*") == 0
    out = capsys.readouterr().out
    assert "3 checkpoints, steps 900 to 2,700, by global_step in the files" in out
    assert "left out: last.ckpt (--exclude 'last*')" in out
    assert "1,800  epoch=1-val_loss=4.95.ckpt" in out
    assert (
        ran("steps", lightning, "--step-from", "epoch={}", "--only", "epoch=[01]*") == 0
    )
    assert (
        "2 checkpoints, epochs 0 to 1, by the names, epoch={}"
        in capsys.readouterr().out
    )


def test_numbers_that_are_the_epochs_that_files_hold_are_epochs(tmp_path, capsys):
    """The audit of timm's files said "step 0" of epochs, and whole paths of broken ones."""
    for epoch in range(5):
        state = {"epoch": epoch, "arch": "tiny", "state_dict": weights(min(epoch, 3))}
        torch.save(state, tmp_path / f"checkpoint-{epoch}.pth.tar")
    (tmp_path / "checkpoint-2.pth.tar").write_bytes(b"cut")
    run = Trajectory.from_folder(tmp_path)
    assert run.lines()[0] == "5 checkpoints, epochs 0 to 4, by the names, checkpoint-{}"
    broken, copies = run.audit()
    assert broken.message.startswith(
        "epoch 2 cannot be read: checkpoint-2.pth.tar cannot be read"
    )
    assert copies.message == "epochs 3 and 4 hold the same weights, byte for byte"
    torch.save(
        {"epoch": 9, "state_dict": weights(7)}, tmp_path / "checkpoint-5.pth.tar"
    )
    assert (
        Trajectory.from_folder(tmp_path)
        .lines()[0]
        .startswith("6 checkpoints, steps 0 to 5")
    )


def test_the_trainers_state_counts_and_its_root_model_is_named(tmp_path):
    for step in (10, 20):
        path = tmp_path / f"checkpoint-{step}"
        path.mkdir()
        save_file(weights(step), path / "model.safetensors")
        (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    save_file(weights(20), tmp_path / "model.safetensors")
    run = Trajectory.from_folder(tmp_path)
    assert run.steps.tolist() == [10, 20] and not run.audit()
    assert run.lines()[0].endswith("by trainer_state.json in the files")
    assert (
        run.lines()[1]
        == "left out: model.safetensors (the folder's own model, without a step)"
    )


def test_a_step_in_the_header_of_a_safetensors_file_counts(tmp_path):
    for name, step in (("a", "20"), ("b", "3")):
        save_file(weights(int(step)), tmp_path / f"{name}.safetensors", {"step": step})
    assert [c.label[0] for c in Trajectory.from_folder(tmp_path)] == ["b", "a"]


def test_two_readings_are_refused_and_the_advice_works(tmp_path):
    for epoch, step in ((0, 900), (1, 500)):
        torch.save(weights(step), tmp_path / f"epoch_{epoch}_step_{step}.pt")
    with pytest.raises(
        CheckpointError, match=r"2 ways: .*--step-from 'epoch_\{\}_step_\*'"
    ):
        Trajectory.from_folder(tmp_path)
    assert Trajectory.from_folder(
        tmp_path, step_from="epoch_{}_step_*"
    ).steps.tolist() == [0, 1]


def test_other_folders_beside_checkpoints_are_none(tmp_path):
    for name in ("step_1_images", "logs", "epoch_1"):
        (tmp_path / name).mkdir()
    for step in (1, 2):
        torch.save(weights(step), tmp_path / f"step_{step}.pt")
    run = Trajectory.from_folder(tmp_path)
    assert run.steps.tolist() == [1, 2] and len(run.lines()) == 1


def test_interrupted_saves_end_a_strict_audit_with_3(tmp_path, capsys):
    for step in (1, 2):
        torch.save(weights(step), tmp_path / f"step_{step}.pt")
    assert ran("audit", tmp_path) == 0
    whole = (tmp_path / "step_2.pt").read_bytes()
    (tmp_path / "step_2.pt").write_bytes(whole[: len(whole) // 2])
    assert ran("audit", tmp_path, "--strict") == 3
    assert "step 2 is left out: step_2.pt is cut off" in capsys.readouterr().out


def test_matrices_that_never_move_and_two_runs_are_findings(tmp_path):
    for step in (1, 2, 3):
        state = {
            "moving": weights(step)["w"],
            "still": weights()["w"],
            "norm": torch.ones(4),
        }
        save_file(state, tmp_path / f"step_{step}.safetensors")
    (finding,) = Trajectory.from_folder(tmp_path).audit()
    assert finding.kind == "frozen" and "1 of 2 matrices never move" in finding.message
    save_file({"moving": torch.ones(2, 2)}, tmp_path / "step_4.safetensors")
    found = {f.kind: f.message for f in Trajectory.from_folder(tmp_path).audit()}
    assert found["configuration"].endswith(
        "leave one out: --exclude step_4.safetensors"
    )
    left = Trajectory.from_folder(tmp_path, exclude="step_4.safetensors")
    assert [f.kind for f in left.audit()] == ["frozen"]


def test_updates_that_fairseq_holds_count_before_epochs_in_its_names(tmp_path):
    for name, updates in {
        "_1_5": 5,
        "_1_10": 10,
        "_2_20": 20,
        "1": 10,
        "_last": 20,
    }.items():
        history = [{"num_updates": 0}, {"num_updates": updates}]
        state = {"model": {"w": torch.ones(2) * updates}, "optimizer_history": history}
        torch.save(state, tmp_path / f"checkpoint{name}.pt")
    order = Trajectory.from_folder(tmp_path, torch.nn.Linear(1, 1)).catalogue.order
    names = {5: "checkpoint_1_5.pt", 10: "checkpoint_1_10.pt", 20: "checkpoint_2_20.pt"}
    assert dict(order.names) == names and order.source == "num_updates in the files"
    assert (
        dict(order.left_out)["checkpoint_last.pt"]
        == "holds step 20, as checkpoint_2_20.pt does"
    )
