import json

import numpy as np
import pytest
import torch

from ontogeny import Trajectory
from ontogeny.errors import ArgumentError
from ontogeny.tasks import split_texts, text_files
from ontogeny.training import RunSettings, record_training_run

TINY = {
    "steps": 300,
    "tokens_per_step": 256,
    "length": 32,
    "vocab_size": 320,
    "layers": 1,
    "width": 32,
    "learning_rate": 1e-2,
}


def sentences(count=240):
    """Sentences in which most words follow from their neighbours."""
    rng = np.random.default_rng(0)
    words = ["red", "green", "blue", "gold", "grey", "pink"]
    return [
        f"{n}: the {a} box holds the {a} ball and the {a} key."
        for n, a in enumerate(rng.choice(words, count))
    ]


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return record_training_run(
        tmp_path_factory.mktemp("runs") / "run", sentences(), **TINY
    )


def digests(folder):
    return [checkpoint.digests() for checkpoint in Trajectory.from_folder(folder)]


def test_the_run_can_be_studied_from_its_first_to_its_last_step(run):
    trajectory = Trajectory.from_folder(run)
    assert len(trajectory) >= 24
    assert trajectory.steps[0] == 0 and trajectory.steps[-1] == TINY["steps"]
    gaps = np.diff(trajectory.steps)
    assert gaps[0] == 1 and gaps[-1] > 1
    model = trajectory[0].model()
    assert model.config.model_type == "eurobert"
    assert len(trajectory.tokenizer()) == model.config.vocab_size


@pytest.mark.usefixtures("one_thread")
def test_the_same_seed_gives_the_same_weights_at_every_checkpoint(tmp_path):
    short = {**TINY, "steps": 12}
    first, again, other = (
        digests(
            record_training_run(
                tmp_path / name, sentences(), random_state=seed, **short
            )
        )
        for name, seed in [("a", 0), ("b", 0), ("c", 1)]
    )
    assert len(first) == 13
    assert first == again
    assert all(a != b for a, b in zip(first, other, strict=True))


def test_checkpoints_differ_from_one_another(run):
    found = [tuple(sorted(d.items())) for d in digests(run)]
    assert len(set(found)) == len(found)


def test_heldout_texts_are_those_that_training_never_saw(run):
    kept, heldout = split_texts(sentences(), RunSettings().heldout, 0)
    assert text_files(run / "heldout.jsonl") == heldout
    assert not set(heldout) & set(kept)


def test_the_log_shows_that_context_was_learned(run):
    log = json.loads((run / "training_log.json").read_text("utf-8"))
    assert log["step"] == list(range(1, TINY["steps"] + 1))
    assert len(log["loss"]) == len(log["learning_rate"]) == TINY["steps"]
    assert log["settings"] == {**log["settings"], **TINY}
    assert log["loss"][0] > log["unigram_entropy"]
    assert np.mean(log["loss"][-20:]) < 0.7 * log["unigram_entropy"]


def test_a_folder_with_files_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ArgumentError, match="not empty"):
        record_training_run(tmp_path, sentences(), **TINY)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"step": 3}, "no setting 'step'.*Did you mean 'steps'"),
        ({"heldout": 0.0}, "fraction"),
        ({"steps": 0}, "steps"),
        ({"vocab_size": 10}, "vocab_size"),
        ({"width": 31}, "width"),
        ({"tokens_per_step": 33}, "tokens_per_step"),
    ],
)
def test_bad_settings_are_named_before_anything_is_written(tmp_path, changes, said):
    folder = tmp_path / "run"
    with pytest.raises(ArgumentError, match=said):
        record_training_run(folder, sentences(), **{**TINY, **changes})
    assert not folder.exists()
