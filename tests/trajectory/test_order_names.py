"""The step in a name, and the order of names: the tables."""

import pytest
import torch

import ontogeny as og
from helpers.study_examples import tiny_model
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory.order.choosing import Choice, order_of
from ontogeny.trajectory.order.inside import Held

# One file or folder: its step and what that counts, or None.
NAMES = {
    "checkpoint-500/": (500, "step"),
    "checkpoint_500/": (500, "step"),
    "step500/": (500, "step"),
    "step-00000512/": (512, "step"),
    "step_500": (500, "step"),
    "global_step500/": (500, "step"),
    "globalstep=500": (500, "step"),
    "GlobalStep500.pt": (500, "step"),
    "iter_0000500/": (500, "step"),
    "iteration-500.pth": (500, "step"),
    "it500.pt": (500, "step"),
    "CKPT_7.pt": (7, "step"),
    "ckpt-7.pth.tar": (7, "step"),
    "ckpt.500.pt": (500, "step"),
    "snapshot_3.pt": (3, "step"),
    "500.safetensors": (500, "step"),
    "00500.pt": (500, "step"),
    "500_steps.pt": (500, "step"),
    "500steps.pt": (500, "step"),
    "run_500steps.pt": (500, "step"),
    "10k_steps.pt": (10_000, "step"),
    "10ksteps.pt": (10_000, "step"),
    "500_step_3_epoch.pt": (500, "step"),
    "step_1k.pt": (1_000, "step"),
    "step_10k.pt": (10_000, "step"),
    "step_1.5k.pt": (1_500, "step"),
    "step_2M.pt": (2_000_000, "step"),
    "step_1e5.pt": (100_000, "step"),
    "step_20001015.pt": (20_001_015, "step"),
    "epoch=1-step=500.ckpt": (500, "step"),
    "epoch=1-step=500-v1.ckpt": (500, "step"),
    "epoch=0-val_loss=5.70.ckpt": (0, "epoch"),
    "epoch=12-val_acc=0.91.ckpt": (12, "epoch"),
    "model_epoch0_loss5.70.pt": (0, "epoch"),
    "loss=5-epoch=3.ckpt": (3, "epoch"),
    "epoch_03/": (3, "epoch"),
    "ep3.pt": (3, "epoch"),
    "5epochs.pt": (5, "epoch"),
    "epoch_5_of_10.pt": (5, "epoch"),
    "bs32_lr3e-4_epoch10_acc0.87.pt": (10, "epoch"),
    "ckpt_3_epochs.pt": (3, "epoch"),
    "tokens_2B.pt": (2_000_000_000, "tokens"),
    "ckpt-1.5B-tokens.pt": (1_500_000_000, "tokens"),
    "stage1-step1000-tokens5B/": (1_000, "step"),
    "gpt2-124M-step-500.pt": (500, "step"),
    "pythia-70m-step1000/": (1_000, "step"),
    "llama-7b-ckpt-20.pt": (20, "step"),
    "seed42_step100.pt": (100, "step"),
    "lr1e-4_step_500.pt": (500, "step"),
    "ckpt_0_2026-11-10.pt": (0, "step"),
    "2026-11-10_ckpt_5.pt": (5, "step"),
    "20261110_153000_step_5.pt": (5, "step"),
    "step_100_a3f9b2.pt": (100, "step"),
    "ckpt_final_step_9.pt": (9, "step"),
    "model_v2.pt": None,
    "round_1_final.pt": None,
    "model_500.pt": None,
    "best.pt": None,
    "best_val_loss=5.70.ckpt": None,
    "last-v1.ckpt": None,
    "final/": None,
    "checkpoint-final/": None,
    "ckpt_2026-11-10.pt": None,
    "ckpt_20261110.pt": None,
    "ckpt_a3f9b2.pt": None,
    "epoch_2.5.pt": (25, "10 x epoch"),
    "loss_5.70.pt": None,
    "model-00001-of-00002.safetensors": None,
    "pytorch_model.bin": None,
    "gpt2-124M.pt": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_step_of_a_name(name):
    order = order_of([name])
    if NAMES[name] is None:
        assert not order.names and order.left_out == (
            (name, "no step in it or its name"),
        )
    else:
        assert order.names == {NAMES[name][0]: name} and order.unit == NAMES[name][1]


# Names of a folder, and what of them is taken by which step; all others are left out.
FOLDERS = [
    (
        ["step_2.pt", "step_10.pt", "step_1.pt"],
        {1: "step_1.pt", 2: "step_2.pt", 10: "step_10.pt"},
    ),
    (["step_500.pt", "step_1k.pt"], {500: "step_500.pt", 1000: "step_1k.pt"}),
    (["model_5.pt", "model_10.pt"], {5: "model_5.pt", 10: "model_10.pt"}),
    (["a-7b-5.pt", "a-7b-10.pt"], {5: "a-7b-5.pt", 10: "a-7b-10.pt"}),
    (
        ["checkpoint-5/", "checkpoint-9/", "final/"],
        {5: "checkpoint-5/", 9: "checkpoint-9/"},
    ),
    (
        ["checkpoint-5/", "checkpoint-9/", "step_3.pt"],
        {5: "checkpoint-5/", 9: "checkpoint-9/"},
    ),
    (
        [
            "epoch=0-step=5.ckpt",
            "epoch=1-step=9.ckpt",
            "epoch=1-step=9-v1.ckpt",
            "last.ckpt",
        ],
        {5: "epoch=0-step=5.ckpt", 9: "epoch=1-step=9.ckpt"},
    ),
    (
        ["epoch=0-val_loss=5.70.ckpt", "epoch=1-val_loss=4.95.ckpt"],
        {0: "epoch=0-val_loss=5.70.ckpt", 1: "epoch=1-val_loss=4.95.ckpt"},
    ),
    (
        ["step_1_apple.pt", "step_2_pear.pt"],
        {1: "step_1_apple.pt", 2: "step_2_pear.pt"},
    ),
    (["model_v1.pt", "model_v2.pt"], {}),
    (["ckpt_2026-11-10.pt", "ckpt_2026-11-11.pt"], {}),
    (["round_1.pt", "round_2.pt", "best.pt"], {1: "round_1.pt", 2: "round_2.pt"}),
]


@pytest.mark.parametrize(("names", "taken"), FOLDERS)
def test_the_order_of_names(names, taken):
    order = order_of(names)
    assert dict(order.names) == taken and list(order.names) == sorted(order.names)
    assert {name for name, _ in order.left_out} == set(names) - set(taken.values())
    assert all(why for _, why in order.left_out)


def held(key="step", unit="step", **values):
    return {f"{name}.pt": Held(value, unit, key) for name, value in values.items()}


def test_a_step_in_the_file_counts_before_its_name():
    names = ["round_1_final.pt", "round_1_begin.pt"]
    order = order_of(names, held(round_1_final=20_000, round_1_begin=0))
    assert dict(order.names) == {0: "round_1_begin.pt", 20_000: "round_1_final.pt"}
    assert order.source == "step in the files"
    order = order_of(["ckpt_1.pt", "ckpt_2.pt"], held(ckpt_1=500, ckpt_2=100))
    assert dict(order.names) == {100: "ckpt_2.pt", 500: "ckpt_1.pt"}


def test_of_several_files_with_one_step_the_one_that_is_named_by_it_counts():
    names = ["ckpt_100.pt", "ckpt_200.pt", "best.pt", "last.pt"]
    order = order_of(names, held(ckpt_100=100, ckpt_200=200, best=100, last=250))
    assert dict(order.names) == {100: "ckpt_100.pt", 200: "ckpt_200.pt", 250: "last.pt"}
    assert order.left_out == (("best.pt", "holds step 100, as ckpt_100.pt does"),)
    order = order_of(["a_1.pt", "a_2.pt", "best.pt"], held(a_1=10, a_2=20, best=20))
    assert dict(order.names) == {10: "a_1.pt", 20: "a_2.pt"}


def test_a_file_without_a_step_has_that_of_its_name_where_both_agree_elsewhere():
    names = ["ckpt_0.pt", "ckpt_100.pt", "ckpt_200.pt"]
    order = order_of(names, held(ckpt_100=100, ckpt_200=200))
    assert dict(order.names) == {0: "ckpt_0.pt", 100: "ckpt_100.pt", 200: "ckpt_200.pt"}
    order = order_of(names, held(ckpt_100=5000, ckpt_200=9000))
    assert dict(order.names) == {5000: "ckpt_100.pt", 9000: "ckpt_200.pt"}
    assert order.left_out == (("ckpt_0.pt", "holds no step, as the others do"),)


def test_a_step_in_the_name_says_more_than_an_epoch_in_the_file():
    epochs = held("epoch", "epoch", step_5=0, step_9=1)
    assert list(order_of(["step_5.pt", "step_9.pt"], epochs).names) == [5, 9]
    order = order_of(["a.pt", "b.pt"], held("epoch", "epoch", a=1, b=0))
    assert dict(order.names) == {0: "b.pt", 1: "a.pt"} and order.unit == "epoch"


AMBIGUOUS = [
    (
        ["checkpoint_1_500.pt", "checkpoint_1_900.pt"],
        {},
        "checkpoint_{}_*",
        "checkpoint_*_{}",
    ),
    (
        ["epoch_0_step_900.pt", "epoch_1_step_500.pt"],
        {},
        "epoch_*_step_{}",
        "epoch_{}_step_*",
    ),
    (["a_1_900.pt", "a_2_500.pt"], {}, "a_{}_*", "a_*_{}"),
    (["checkpoint-5/", "step5/"], {}, "--only 'checkpoint-*/'", "--only 'step*/'"),
    (
        ["step_1.pt", "step_2.pt", "x_step_1.pt", "x_step_2.pt"],
        {},
        "'step_*.pt'",
        "'x_step_*.pt'",
    ),
    (
        ["step_1.pt", "step_01.pt"],
        {},
        "both stand for step 1;",
        "--exclude 'step_01.pt'",
    ),
    (
        ["e_1.pt", "e_2.pt"],
        held(e_1=9, e_2=9),
        "--step-from step",
        "--step-from 'e_{}'",
    ),
    (
        ["best.pt", "last.pt"],
        held(best=9, last=9),
        "best.pt and last.pt both hold step 9",
        "",
    ),
]


@pytest.mark.parametrize(("names", "inside", "one", "other"), AMBIGUOUS)
def test_where_two_readings_are_possible_both_are_named(names, inside, one, other):
    with pytest.raises(CheckpointError) as refused:
        order_of(names, inside)
    assert one in str(refused.value) and other in str(refused.value)


def test_what_is_said_counts():
    names = ["epoch_0_step_900.pt", "epoch_1_step_500.pt", "best.pt"]
    order = order_of(names, choice=Choice("epoch_{}"))
    assert list(order.names) == [0, 1] and order.unit == "epoch"
    assert order.left_out == (
        ("best.pt", "--step-from 'epoch_{}' reads no step from it"),
    )
    assert list(order_of(names, choice=Choice("epoch_*_step_{}")).names) == [500, 900]
    assert list(order_of(["m1.5k", "m2k"], choice=Choice("m{}")).names) == [1500, 2000]
    only = order_of(["a_1.pt", "a_2.pt", "b_1.pt", "b_2.pt"], choice=Choice(only="a_*"))
    assert list(only.names.values()) == ["a_1.pt", "a_2.pt"]
    assert only.left_out[0] == ("b_1.pt", "not in --only 'a_*'")
    some = order_of(["step_1/", "step_2/"], choice=Choice(exclude=["step_2"]))
    assert dict(some.names) == {1: "step_1/"} and some.left_out == (
        ("step_2/", "--exclude 'step_2'"),
    )
    key = order_of(["step_1.pt"], held("n", step_1=7), Choice("n"))
    assert dict(key.names) == {7: "step_1.pt"}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"step_from": "a{}b{}"}, "step_from must be a pattern of names with one {}"),
        ({"only": [3]}, "only must be patterns of names"),
    ],
)
def test_wrong_choices_are_refused(said, message):
    with pytest.raises(ArgumentError, match=message):
        Choice(**said)


def test_a_choice_that_leaves_nothing_or_reads_nothing_is_refused():
    with pytest.raises(
        CheckpointError, match=r"nothing is left of a_1.pt: --exclude 'a\*'"
    ):
        order_of(["a_1.pt"], choice=Choice(exclude="a*"))
    with pytest.raises(
        CheckpointError, match=r"--step-from 'x=\{\}' reads no step from a_1.pt"
    ):
        order_of(["a_1.pt"], choice=Choice("x={}"))
    with pytest.raises(
        CheckpointError, match=r"reads 1 from a_1_2\.pt and from a_1_3\.pt"
    ):
        order_of(["a_1_2.pt", "a_1_3.pt"], choice=Choice("a_{}"))


@pytest.mark.parametrize(
    ("names", "advice", "steps"),
    [
        (("ckpt_{}_ema.pt", "ckpt_{}.pt"), "--exclude 'ckpt_*_ema.pt'", "ckpt_{}.pt"),
        (("iter_{}_hf/", "iter_{}/"), "--exclude 'iter_*_hf/'", "iter_{}/"),
        (
            ("seed0_step{}.pt", "seed1_step{}.pt"),
            "--only 'seed0_step*.pt'",
            "seed0_step{}.pt",
        ),
        (
            ("stage1_step{}/", "stage2_step{}/"),
            "--only 'stage1_step*'",
            "stage1_step{}/",
        ),
    ],
)
def test_what_is_advised_of_two_runs_opens_one_of_them(names, advice, steps):
    files = [name.format(step) for name in names for step in (100, 200)]
    with pytest.raises(CheckpointError) as refused:
        order_of(files)
    assert advice in str(refused.value)
    option, pattern = advice.replace("--", "").replace("'", "").split()
    chosen = order_of(files, choice=Choice(**{option: pattern}))
    assert dict(chosen.names) == {step: steps.format(step) for step in (100, 200)}


def test_runs_whose_number_is_one_of_the_steps_are_told_apart():
    files = [f"seed_{seed}-step_{step}k/" for seed in (0, 1) for step in (0, 20, 40)]
    with pytest.raises(
        CheckpointError, match=r"take one run with --only 'seed_0-step_\*k'"
    ):
        order_of(files)


def test_batches_of_composer_are_steps_and_shards_with_an_underscore_are_none():
    names = [
        "ep0-ba100-rank0.pt",
        "ep0-ba200-rank0.pt",
        "ep1-ba300-rank0.pt",
        "latest-rank0.pt",
    ]
    assert list(order_of(names).names) == [100, 200, 300]
    assert not order_of(
        ["model_00001-of-00002.safetensors", "model_00002-of-00002.safetensors"]
    ).names


@pytest.mark.parametrize(
    ("names", "steps", "unit"),
    [
        (["epoch_0.5/", "epoch_1.0/", "epoch_1.5/"], [5, 10, 15], "10 x epoch"),
        (["epoch-1.25/", "epoch-2/", "epoch-0.5/"], [50, 125, 200], "100 x epoch"),
        (["checkpoint-epoch-0.1/", "checkpoint-epoch-1/"], [1, 10], "10 x epoch"),
        (["epoch=0.50-loss=2.9.pt", "epoch=1.00-loss=2.1.pt"], [5, 10], "10 x epoch"),
        (
            ["e_epoch0.3333333333333.pt", "e_epoch0.1.pt"],
            [100_000, 333_333],
            "1000000 x epoch",
        ),
        (["epoch1.0/", "epoch2.0/"], [1, 2], "epoch"),
        (["epoch_0.5-step_9.pt", "epoch_1.5-step_27.pt"], [9, 27], "step"),
    ],
)
def test_parts_of_epochs_are_in_order_and_their_factor_is_said(names, steps, unit):
    order = order_of(names)
    assert list(order.names) == steps and order.unit == unit and not order.left_out
    asked = order_of(names, choice=Choice("step_{}" if unit == "step" else "epoch*{}"))
    assert list(asked.names) == steps


def test_numbers_that_may_count_within_an_epoch_are_refused():
    with pytest.raises(
        CheckpointError, match=r"epoch1\.10\.pt may be a part of an epoch"
    ):
        order_of(["epoch1.9.pt", "epoch1.10.pt"])
    order = order_of(["step_100_epoch_1.9.pt", "step_200_epoch_1.10.pt"])
    assert list(order.names) == [100, 200] and order.unit == "step"
    tokens = order_of(["tokens_0.5.pt", "tokens_1.5.pt"], choice=Choice("tokens_{}"))
    assert "10 x tokens 5 to 15" in "".join(tokens.lines())
    assert order_of(["m0.5.pt", "m1.pt"], choice=Choice("m{}")).unit == "10 x step"


def test_a_control_run_counts_what_its_run_counts(tmp_path):
    torch.manual_seed(0)
    for epoch in range(3):
        torch.save(tiny_model(seed=epoch).state_dict(), tmp_path / f"epoch_{epoch}.pt")
    run = og.Trajectory.from_folder(tmp_path, model=tiny_model)
    assert (run.unit, run.control("turned", random_state=0).unit) == ("epoch", "epoch")
    assert og.Trajectory.from_models({0: tiny_model(), 1: tiny_model()}).unit == "step"


def epochs(**held):
    return {f"{name}.pt": Held(value, "epoch", "epoch") for name, value in held.items()}


@pytest.mark.parametrize(
    ("names", "held", "steps", "left_out"),
    [
        # All hold their epoch, the final one alone.
        (
            "epoch_1 epoch_2 final",
            {"epoch_1": 1, "epoch_2": 2, "final": 3},
            "1 2 3",
            "",
        ),
        # Files count from zero, names from one.
        (
            "epoch_1 epoch_2 final",
            {"epoch_1": 0, "epoch_2": 1, "final": 2},
            "1 2 3",
            "",
        ),
        # Nobody else holds any: it may count from zero or one, but comes later in both.
        ("epoch_1 epoch_2 final", {"final": 3}, "1 2 3", ""),
        (
            "epoch_1 epoch_2 final",
            {"final": 2},
            "1 2",
            "final: epoch_2.pt may be the same",
        ),
        (
            "epoch_1 epoch_2 last",
            {"epoch_1": 1, "epoch_2": 2, "last": 2},
            "1 2",
            "last: as epoch_2",
        ),
        (
            "epoch_1 epoch_2 best",
            {"epoch_2": 2, "best": 1},
            "1 2",
            "best: as epoch_1.pt does",
        ),
        # Numbers that no word calls epochs may be steps.
        (
            "rnn_10 rnn_20 rnn_final",
            {"rnn_final": 40},
            "10 20",
            "rnn_final: epoch 40, and the other",
        ),
        (
            "step_10 step_20 final",
            {"final": 2},
            "10 20",
            "final: holds epoch 2, and the other",
        ),
        # Names and files disagree: which of both the final one counts by is not known.
        (
            "epoch_1 epoch_5 final",
            {"epoch_1": 1, "epoch_5": 2, "final": 3},
            "1 5",
            "final: holds epoch 3",
        ),
    ],
)
def test_a_final_file_with_its_epoch_inside_has_its_place(names, held, steps, left_out):
    order = order_of([f"{name}.pt" for name in names.split()], epochs(**held))
    assert [*order.names] == [int(step) for step in steps.split()]
    name, _, why = left_out.partition(": ")
    assert dict(order.left_out).keys() == ({f"{name}.pt"} if name else set())
    assert why in dict(order.left_out).get(f"{name}.pt", "")
    if not left_out:
        assert order.names[3] == "final.pt" and "final.pt holds" in order.source


def test_what_names_of_tokens_count_has_one_plural():
    order = order_of(["tokens_10.pt", "tokens_20.pt", "final.pt"], epochs(final=2))
    why = "holds epoch 2, and the other names count tokens"
    assert order.left_out == (("final.pt", why),)


def test_numbers_without_a_word_are_known_as_guessed():
    assert order_of(["model_8.pt", "model_16.pt"]).guessed == "model_{}"
    for names in (["step_8.pt", "step_16.pt"], ["8.pt", "16.pt"]):
        assert order_of(names).guessed == ""
    said = order_of(["model_8.pt", "model_16.pt"], None, Choice("model_{}"))
    assert said.guessed == ""
