"""Losses that a run wrote down: each writer's own form, validation first, at the checkpoints."""

import json

import pytest
import torch

from helpers.study_examples import tiny_model
from ontogeny import Trajectory
from ontogeny.trajectory.recorded import recorded_losses


def folder_of(path, steps, beside=None):
    """Write one small model at each step, as a Trainer's folders or as files with numbers."""
    model = tiny_model()
    path.mkdir()
    for number, step in enumerate(steps):
        if beside is None:
            model.save_pretrained(path / f"checkpoint-{step}")
        else:
            saved = {"model": model.state_dict(), "iter_num": step}
            saved |= {key: values[number] for key, values in beside.items()}
            torch.save(saved, path / f"ckpt_{step}.pt")
    return path


def recorded_of(path):
    trajectory = Trajectory.from_folder(path, tiny_model)
    return recorded_losses(trajectory.path, list(trajectory), trajectory.unit)


def test_the_trainers_validation_losses_go_before_those_of_training(tmp_path):
    path = folder_of(tmp_path / "run", (10, 20))
    history = [
        {"step": 10, "loss": 3.0},
        {"step": 10, "eval_loss": 3.5},
        {"step": 20, "loss": 2.0},
        {"step": 20, "eval_loss": 2.5},
    ]
    state = path / "checkpoint-20" / "trainer_state.json"
    state.write_text(json.dumps({"global_step": 20, "log_history": history}))
    found = recorded_of(path)
    assert (found.of, found.pairs) == ("validation", ((10, 3.5), (20, 2.5)))
    assert found.where == "trainer_state.json"
    state.write_text(json.dumps({"global_step": 20, "log_history": history[::2]}))
    found = recorded_of(path)
    assert (found.of, found.pairs) == ("training", ((10, 3.0), (20, 2.0)))


def test_what_nanogpt_prints_is_read_beside_its_checkpoints(tmp_path):
    path = folder_of(tmp_path / "run", (0, 250), {"config": [1, 1]})
    (path / "train.log").write_text(
        "step 0: train loss 4.2221, val loss 4.2306\niter 0: loss 4.2, time 9ms\n"
        "step 250: train loss 1.9690, val loss 2.0529\n"
    )
    found = recorded_of(path)
    assert (found.of, found.where) == ("validation", "train.log")
    assert found.pairs == ((0, 4.2306), (250, 2.0529))


@pytest.mark.parametrize(
    ("beside", "of", "losses"),
    [
        ({"val_loss": [3.0, 2.0]}, "validation", (3.0, 2.0)),
        ({"val_loss": [torch.tensor(3.0), torch.tensor(2.0)]}, "validation", (3, 2)),
        ({"loss": [3.0, 2.0], "test_losses": [[3.5], [3.5, 2.5]]}, "validation", (3.5, 2.5)),
        ({"loss": [3.0, 2.0]}, "training", (3.0, 2.0)),
    ],
)  # fmt: skip
def test_numbers_beside_the_weights_are_taken_by_their_keys(
    tmp_path, beside, of, losses
):
    found = recorded_of(folder_of(tmp_path / "run", (0, 5), beside))
    assert (found.of, found.losses) == (of, losses)


def test_the_best_loss_so_far_is_only_that_of_a_checkpoint_where_it_fell(tmp_path):
    beside = {"best_val_loss": [torch.tensor(x) for x in (4.0, 3.0, 3.0)]}
    found = recorded_of(folder_of(tmp_path / "run", (0, 5, 9), beside))
    assert found.pairs == ((0, 4.0), (5, 3.0))


@pytest.mark.parametrize("beside", [{}, {"loss": [float("nan"), "much"]}])
def test_nothing_is_recorded_where_no_number_says_so(tmp_path, beside):
    assert recorded_of(folder_of(tmp_path / "run", (0, 5), beside)) is None
