"""Trained controls: the same run on tokens from which less can be learned."""

import json

import numpy as np
import pytest
import torch

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError
from ontogeny.tasks import text_files
from ontogeny.training import (
    masked_language_modelling,
    record_training_run,
    scrambled,
    scrambled_tokens,
)

SIZES = {
    "steps": 120,
    "tokens_per_step": 256,
    "length": 32,
    "vocab_size": 320,
    "layers": 1,
    "width": 32,
    "learning_rate": 1e-2,
}
WORDS = ("red", "green", "blue", "gold", "grey", "pink")


def sentences(count=240):
    """Sentences in which most words follow from their neighbours."""
    drawn = np.random.default_rng(0).choice(WORDS, count)
    return [
        f"{n}: the {a} box holds the {a} ball and the {a} key."
        for n, a in enumerate(drawn)
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    return record_training_run(folder, sentences(), random_state=3, **SIZES)


@pytest.fixture(scope="module")
def controls(run, tmp_path_factory):
    kinds = {"frequencies", "nothing"}
    folder = tmp_path_factory.mktemp("controls")
    return {kind: scrambled(run, folder / kind, kind, sentences()) for kind in kinds}


def heldout_losses(trajectory, run):
    """Return the loss at masked positions of the texts held out, at the first and last step."""
    tokenizer = Trajectory.from_folder(run).tokenizer()
    task = masked_language_modelling(
        text_files(run / "heldout.jsonl"), tokenizer, length=32, tokens_per_step=1024
    )
    batch = task.sample(torch.Generator().manual_seed(0))
    losses = []
    for checkpoint in (trajectory[0], trajectory[SIZES["steps"]]):
        with torch.no_grad():
            losses.append(float(task.loss(checkpoint.model(), batch)))
    return losses, task.unigram_entropy


def test_all_but_the_tokens_is_that_of_the_run(run, controls):
    source = Trajectory.from_folder(run)
    expected = json.loads((run / "training_log.json").read_text("utf-8"))
    assert expected["random_state"] == 3 and "scrambled" not in expected
    for kind, control in controls.items():
        log = json.loads((control.path / "training_log.json").read_text("utf-8"))
        assert log["scrambled"] == {"kind": kind, "random_state": 0}
        for key in ("settings", "learning_rate", "step", "random_state"):
            assert log[key] == expected[key]
        assert control.steps.tolist() == source.steps.tolist()
        assert control[0].fingerprint == source[0].fingerprint
        assert control[120].fingerprint != source[120].fingerprint
        assert control.tokenizer().get_vocab() == source.tokenizer().get_vocab()
        assert control.title == f"run (trained on {kind} 0)"
    logs = [
        json.loads((t.path / "training_log.json").read_text("utf-8"))
        for t in (controls["frequencies"], controls["nothing"])
    ]
    assert logs[0]["unigram_entropy"] == pytest.approx(
        expected["unigram_entropy"], abs=1e-12
    )
    assert logs[1]["unigram_entropy"] > expected["unigram_entropy"] + 0.5


def test_only_the_run_learns_from_context(run, controls):
    (first, last), frequencies = heldout_losses(Trajectory.from_folder(run), run)
    assert last < 0.88 * frequencies and frequencies < first
    (first, last), _ = heldout_losses(controls["frequencies"], run)
    assert 0.95 * frequencies < last < first
    (first, last), _ = heldout_losses(controls["nothing"], run)
    assert last > first - 0.05


def test_control_trajectories_do_not_improve_the_loss(run):
    source = Trajectory.from_folder(run)
    (start, end), _ = heldout_losses(source, run)
    for kind, seed in (
        ("turned", 0),
        ("turned", 1),
        ("turned", 2),
        ("walk", 0),
        ("walk", 1),
    ):
        (first, last), _ = heldout_losses(source.control(kind, seed), run)
        assert first == start and last > start - 0.15 * (start - end), (kind, seed)


def test_texts_may_begin_and_end_with_white_space(tmp_path):
    texts = [f" {text}\n" for text in sentences(40)]
    run = record_training_run(tmp_path / "run", texts, **{**SIZES, "steps": 1})
    control = scrambled(run, tmp_path / "control", texts=texts)
    assert (control.path / "heldout.jsonl").read_text() == (
        run / "heldout.jsonl"
    ).read_text()


def test_other_texts_and_folders_are_refused(run, tmp_path):
    with pytest.raises(
        ArgumentError, match="texts are not those that run was trained on"
    ):
        scrambled(run, tmp_path / "a", texts=sentences()[:-1])
    with pytest.raises(
        ArgumentError, match=r"run must be a folder that record_training_run wrote"
    ):
        scrambled(tmp_path, tmp_path / "a", texts=sentences())
    with pytest.raises(
        ArgumentError, match="kind must be one of 'frequencies', 'nothing'"
    ):
        scrambled(run, tmp_path / "a", "noise", sentences())
    with pytest.raises(ArgumentError, match="not empty"):
        scrambled(run, run, texts=sentences())
    assert not (tmp_path / "a").exists()


IDS = [[1, 5, 6, 7, 2], [1, 5, 5, 2]]


@pytest.mark.parametrize(
    "ids",
    [IDS, IDS[0], np.array([IDS[0], IDS[0]], np.int32), torch.tensor([IDS[0], IDS[0]])],
    ids=["texts", "list", "array", "tensor"],
)
def test_the_order_is_new_and_tokens_kept_stay(ids):
    made = scrambled_tokens(ids, "frequencies", 0, keep=[1, 2])
    assert type(made) is type(ids)
    flat, other = (
        np.concatenate([np.ravel(r) for r in x]).tolist() for x in (ids, made)
    )
    assert sorted(flat) == sorted(other)
    assert [t if t < 3 else 0 for t in flat] == [t if t < 3 else 0 for t in other]
    if hasattr(ids, "dtype"):
        assert made.dtype == ids.dtype and made.shape == ids.shape
    elif ids is IDS:
        assert [len(row) for row in made] == [5, 4]


def test_texts_may_be_empty_and_ids_kept_lie_outside_the_vocabulary():
    made = scrambled_tokens([[1, -100], [], [2]], "nothing", vocab_size=3, keep=[-100])
    assert [len(row) for row in made] == [2, 0, 1] and made[0][1] == -100
    assert scrambled_tokens([[], []], "frequencies") == [[], []]


def test_tokens_in_random_order_tell_nothing_of_their_neighbours():
    ids = np.tile(np.arange(10), 2000)
    made = scrambled_tokens(ids, "frequencies")
    assert np.array_equal(np.bincount(made), np.bincount(ids))
    follows = np.mean(made[1:] == (made[:-1] + 1) % 10)
    assert follows == pytest.approx(0.1, abs=0.01)


def test_random_tokens_are_equally_likely_and_never_special():
    made = scrambled_tokens(np.full(20_000, 3), "nothing", vocab_size=12, keep=[0, 4])
    counts = np.bincount(made, minlength=12)
    assert counts[[0, 4]].tolist() == [0, 0]
    assert np.delete(counts, [0, 4]) == pytest.approx(np.full(10, 2000), abs=200)
    assert np.array_equal(
        made,
        scrambled_tokens(np.full(20_000, 3), "nothing", vocab_size=12, keep=[0, 4]),
    )


@pytest.mark.parametrize(
    ("ids", "options", "message"),
    [
        ([3], {"kind": "order"}, "kind must be one of 'frequencies', 'nothing'"),
        ([3], {"kind": "nothing"}, "give vocab_size"),
        (
            [3],
            {"kind": "nothing", "vocab_size": 3},
            "vocab_size is 3, but ids has the id 3",
        ),
        (
            [3],
            {"kind": "nothing", "vocab_size": 4, "keep": range(4)},
            "none is left to draw",
        ),
        ([0.5], {"kind": "frequencies"}, "ids must be whole numbers; got float64"),
        (
            [3],
            {"kind": "frequencies", "random_state": -1},
            "random_state must be a whole number",
        ),
        (
            [-1, 2],
            {"kind": "nothing", "vocab_size": 3},
            "vocab_size is 3, but ids has the id -1",
        ),
        (
            [[[1, 2]], [[3, 4]]],
            {"kind": "frequencies"},
            "a list with a list of ids per text",
        ),
        ([3], {"kind": "frequencies", "keep": 3}, "keep must"),
        (
            [3],
            {"kind": "frequencies", "keep": [1.5]},
            "keep must hold whole numbers; got 1.5",
        ),
    ],
)
def test_bad_arguments_are_refused(ids, options, message):
    with pytest.raises(ArgumentError, match=message):
        scrambled_tokens(ids, **options)
