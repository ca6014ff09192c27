"""Training texts beside held-out ones: the steps at which both are known, against an own loop."""

import re

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import ontogeny as og
from helpers.paths import GUIDES
from ontogeny.claims import Certainty, Kind, from_dataset
from ontogeny.features.predictions.rises import rise_p_value
from ontogeny.features.predictions.set_claims import claims_of_sets
from ontogeny.study.file import make_sources
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

P = 13
STEPS = (0, 10, 20, 30, 40, 50)


class Table(nn.Module):
    """Knows the answers of some rows *a, b* from a step on, and of the others from another."""

    def __init__(self, known):
        super().__init__()
        self.known = nn.Parameter(torch.as_tensor(known, dtype=torch.float32))

    def forward(self, ids):
        first = torch.cat([ids[:, :1], ids[:, :-1]], dim=1)
        sums = nn.functional.one_hot((first + ids) % P, P).float()
        return 8.0 * self.known[first, ids][..., None] * sums


ROWS = np.array([[a, b, (a + b) % P] for a in range(P) for b in range(P)])
TRAINING, HELD_OUT = ROWS[::2], ROWS[1::2]


def grokking():
    """Return a run that knows the training rows from step 20 on, and the others from step 40 on."""
    models = {}
    for step in STEPS:
        known = np.zeros((P, P))
        known[TRAINING[:, 0], TRAINING[:, 1]] = step >= 20
        known[HELD_OUT[:, 0], HELD_OUT[:, 1]] = (step >= 40) - 0.5 * (20 <= step < 40)
        models[step] = Table(known)
    return og.Trajectory.from_models(models)


def inputs(score="last:1"):
    made = {"text": HELD_OUT, "training": TRAINING}
    return {
        n: og.Inputs.from_tokens(r, score=score, vocab_size=P) for n, r in made.items()
    }


def studied(tmp_path, trajectory=None, texts=None):
    observable = og.observables.TrainingTexts("training", objective="causal")
    study = og.Study(
        trajectory or grokking(), texts or inputs(), [observable], device="cpu"
    )
    return study.run(tmp_path / "s", progress=False)


def claims_of(result):
    claims = from_dataset(result.tree.to_dataset())
    return {c.kind: c for c in claims if c.subject.node == "training-texts"}


def test_losses_and_answers_are_those_of_an_own_loop(tmp_path):
    node = studied(tmp_path)["training-texts"]
    run = grokking()
    for name, rows in (("training", TRAINING), ("held-out", HELD_OUT)):
        ids = torch.tensor(rows)
        for step in STEPS:
            with torch.no_grad():
                log_p = run[step].model()(ids)[:, 1].log_softmax(-1)
            loss = -log_p.gather(1, ids[:, 2:]).mean()
            found = node.sel(step=step, set=name)
            assert float(found.set_loss) == pytest.approx(float(loss), abs=1e-5)
            right = (log_p.argmax(-1) == ids[:, 2]).double().mean()
            assert float(found.set_accuracy) == pytest.approx(float(right))
    gap = node.set_loss.sel(set="held-out") - node.set_loss.sel(set="training")
    assert node.gap.values == pytest.approx(gap.values, abs=1e-6)


def test_both_steps_of_grokking_are_claimed(tmp_path):
    claims = claims_of(studied(tmp_path))
    memorised, generalises = claims[Kind.MEMORISED], claims[Kind.GENERALISES]
    assert memorised.certainty is generalises.certainty is Certainty.SURE
    assert (memorised.since, memorised.since_low, memorised.since_high) == (20, 10, 20)
    assert (generalises.since, generalises.since_low, generalises.since_high) == (
        40,
        30,
        40,
    )
    assert Kind.OVERFITS not in claims  # the loss rises, and falls again


def node_of(held, training, scored=False, counts=10, line=3.0):
    """Return a node of losses (step, text) of both sets."""
    steps = np.arange(len(held)) * 10
    values = {"held": np.asarray(held), "training": np.asarray(training)}
    data = {}
    for name, costs in values.items():
        text = f"{name}_text"
        data[f"{name}_cost"] = (("step", text), costs)
        data[f"{name}_right"] = (("step", text), np.exp(-costs))
        data[f"{name}_line"] = (text, np.full(costs.shape[1], line))
        data[f"{name}_count"] = (text, np.full(costs.shape[1], counts))
    means = np.stack(
        [values["training"].mean(axis=1), values["held"].mean(axis=1)], axis=1
    )
    return xr.Dataset(
        {
            **data,
            "set_loss": (("step", "set"), means),
            "set_accuracy": (("step", "set"), np.exp(-means)),
            "gap": ("step", means[:, 1] - means[:, 0]),
            "answers_scored": np.int8(scored),
        },
        coords={"step": steps, "set": ["training", "held-out"]},
    )


def answers(shares, texts, seed=0):
    """Return a node of answers, right in given shares of texts that are as hard at every step."""
    hard = np.random.default_rng(seed).random(texts)
    right = (hard < np.asarray(shares)[:, None]).astype(float)
    node = node_of(3.0 - right, 3.0 - right, scored=True)
    return node.assign(
        held_right=(("step", "held_text"), right),
        training_right=(("step", "training_text"), right),
    )


def sure(node):
    return [c.kind for c in claims_of_sets("n", node) if c.certainty is Certainty.SURE]


def test_few_texts_that_are_all_right_do_not_show_that_95_percent_are():
    """Of 62 texts a set of which 94.9 % are right has them all right in 4 % of draws."""
    for texts, is_sure in ((20, False), (62, False), (63, True)):
        claims = claims_of_sets("n", answers([0, 1, 1], texts))
        (known,) = [c for c in claims if c.kind is Kind.GENERALISES]
        assert (known.certainty is Certainty.SURE) == is_sure
        assert is_sure or (known.since, known.needed) == (10, 63)


@pytest.mark.slow
def test_an_open_claim_says_how_many_texts_would_show_it():
    """The exact test is the most powerful: with a third fewer texts it is seen less often."""
    right = np.repeat([[0.0], [1.0], [1.0]], 100, axis=1)
    right[1:, :3] = 0
    node = answers([0, 1, 1], 100).assign(held_right=(("step", "held_text"), right))
    (known,) = [c for c in claims_of_sets("n", node) if c.kind is Kind.GENERALISES]
    assert known.certainty is Certainty.OPEN
    seen = {
        texts: sum(
            Kind.GENERALISES in sure(answers([0, 0.97, 0.97], texts, seed))
            for seed in range(200)
        )
        for texts in (int(known.needed), int(known.needed * 2 / 3))
    }
    enough, fewer = seen.values()
    assert enough >= 180 > fewer


@pytest.mark.parametrize("texts", [100, 400])
def test_a_set_of_which_94_percent_are_right_is_hardly_ever_known(texts):
    shares = [0.05, 0.5, 0.94, 0.94, 0.94]
    said = [Kind.GENERALISES in sure(answers(shares, texts, s)) for s in range(300)]
    assert sum(said) <= 23


def test_the_interval_of_the_step_holds_where_the_share_is_really_reached():
    shares = [0.05, 0.5, 0.8, 0.93, 0.97, 1.0, 1.0]
    held = 0
    for seed in range(300):
        claims = claims_of_sets("n", answers(shares, 150, seed))
        (known,) = [c for c in claims if c.kind is Kind.GENERALISES]
        held += known.since_low <= 40 <= known.since_high
    assert held >= 277


def courses(held, training, texts=80, noise=0.02, seed=0):
    rng = np.random.default_rng(seed)
    of_text = rng.normal(0, 0.5, texts)
    return [
        np.asarray(mean)[:, None] + of_text + rng.normal(0, noise, (len(mean), texts))
        for mean in (held, training)
    ]


RISES = [4.0, 2.0, 1.5, 1.7, 1.9]


def test_a_loss_that_leaves_its_minimum_overfits_since_then():
    held, training = courses(RISES, [4.0, 1.9, 1.3, 0.9, 0.5])
    by_kind = {c.kind: c for c in claims_of_sets("n", node_of(held, training))}
    overfits = by_kind[Kind.OVERFITS]
    assert overfits.certainty is Certainty.SURE
    assert (overfits.since, overfits.since_low, overfits.since_high) == (30, 30, 30)
    assert overfits.value == pytest.approx(0.4, abs=0.02)


@pytest.mark.slow
def test_a_flat_end_does_not_overfit():
    """Noise of .02 at each text: the smallest of the late losses is lower than the last by luck."""
    named = 0
    for seed in range(200):
        held, training = courses(
            [4.0, 2.0, 1.5, 1.5, 1.5, 1.5], [4.0, 1.9, 1.3, 0.9, 0.5, 0.3], seed=seed
        )
        claims = claims_of_sets("n", node_of(held, training))
        named += sum(
            c.kind is Kind.OVERFITS and c.certainty is Certainty.SURE for c in claims
        )
    assert named <= 4


@pytest.mark.parametrize("steps", [5, 8, 16])
@pytest.mark.parametrize("jitter", [0.01, 0.045])
def test_checkpoints_that_jitter_do_not_overfit(steps, jitter):
    """Up to 3 % of the gain, 1.5 nats, all texts by the same."""
    named = 0
    for seed in range(100):
        luck = np.random.default_rng(1000 + seed).normal(0, jitter, steps)
        flat = 1.5 + 2.5 * np.exp(-15 * np.linspace(0, 1, steps))
        held, training = courses(
            flat + luck, flat + luck - np.linspace(0, 0.5, steps), seed=seed
        )
        named += Kind.OVERFITS in sure(node_of(held, training))
    assert named <= 7


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_a_course_that_is_not_finite_shows_no_rise(broken):
    assert rise_p_value(np.array([0.9, 0.5, broken, 0.2, 0.3, 0.4])) == 1


@pytest.mark.parametrize(
    ("steps", "share", "jitter"), [(8, 0.2, 0.015), (12, 0.1, 0.015), (24, 0.1, 0.03)]
)
def test_a_rise_beyond_the_jitter_of_checkpoints_overfits(steps, share, jitter):
    """Of a gain of 1.5 nats so much is lost again: twenty, ten and five times the jitter."""
    named = 0
    place = np.linspace(0, 1, steps)
    rise = 1.5 * share * np.clip(place - 0.4, 0, None) / 0.6
    rise = rise + 1.5 + 2.5 * np.exp(-15 * place)
    for seed in range(100):
        luck = np.random.default_rng(1000 + seed).normal(0, jitter, steps)
        held, training = courses(rise + luck, rise + luck - 2 * place, seed=seed)
        named += Kind.OVERFITS in sure(node_of(held, training))
    assert named >= 92


def test_a_loss_that_rises_with_that_of_training_texts_does_not_overfit():
    held, training = courses([4.0, 2.0, 1.5, 1.7, 1.9], [4.0, 1.9, 1.3, 1.5, 1.7])
    claims = claims_of_sets("n", node_of(held, training))
    assert Kind.OVERFITS not in {c.kind for c in claims}


def test_without_answers_it_is_the_share_of_the_final_gain():
    held, training = courses(
        [4.0, 2.0, 1.10, 1.02, 1.0], [4.0, 1.03, 1.01, 1.0, 1.0], noise=0.01
    )
    by_kind = {c.kind: c for c in claims_of_sets("n", node_of(held, training))}
    # 95 % of the gain of 2 nats over frequencies leave 0.1.
    assert by_kind[Kind.MEMORISED].since == 10
    assert by_kind[Kind.GENERALISES].since in (20, 30)


def test_a_model_that_is_worse_than_frequencies_has_learned_neither():
    held, training = courses([4.0, 3.9, 3.8], [4.0, 3.9, 3.8])
    claims = claims_of_sets("n", node_of(held, training))
    assert {c.certainty for c in claims} == {Certainty.OPEN}


class Halves(nn.Module):
    """Answers the first of two answer tokens right, and the second one wrong."""

    def __init__(self, sharp):
        super().__init__()
        self.sharp = nn.Parameter(torch.tensor(float(sharp)))

    def forward(self, ids):
        place = torch.arange(ids.shape[1])[None, :]
        said = torch.where(place == 1, (ids + 1) % P, (ids + 2) % P)
        return self.sharp * nn.functional.one_hot(said, P).float()


def test_tokens_of_long_answers_count_beside_whole_ones(tmp_path):
    rng = np.random.default_rng(0)
    first = rng.integers(0, P, (200, 2))
    answer = (first[:, 1] + 1) % P
    rows = np.column_stack([first, answer, (answer + 3) % P])
    texts = {
        name: og.Inputs.from_tokens(part, score="last:2", vocab_size=P)
        for name, part in (("text", rows[:100]), ("training", rows[100:]))
    }
    run = og.Trajectory.from_models({step: Halves(step) for step in (0, 5, 10)})
    result = studied(tmp_path, run, texts)
    node = result["training-texts"]
    assert node.set_accuracy.values[-1].tolist() == [0, 0]
    assert node.token_accuracy.values[-1] == pytest.approx([0.5, 0.5])
    claims = claims_of(result)
    (tokens,) = [
        b for b in claims[Kind.GENERALISES].beside if b.name == "answer tokens"
    ]
    assert tokens.value == pytest.approx(0.5)
    said_of = said([claims[Kind.GENERALISES]], Voice(), Names()).text
    assert "0 % right in the end (50 % of answer tokens)" in said_of


def test_the_noise_of_one_unit_is_unknown_and_not_0(tmp_path):
    texts = {
        name: og.Inputs.from_tokens(
            part, score="last:1", vocab_size=P, documents=["a"] * len(part)
        )
        for name, part in (("text", HELD_OUT), ("training", TRAINING))
    }
    node = studied(tmp_path, texts=texts)["training-texts"]
    assert not [name for name in node if name.endswith("_stderr")]
    assert not [name for name in node if name.startswith("gap_")]


def test_a_study_file_holds_training_texts_within_its_inputs(tmp_path):
    torch.save({"0.weight": torch.zeros(4, 4)}, tmp_path / "step_1.pt")
    (tmp_path / "model.py").write_text(
        "from torch import nn\n\n\n"
        "def build():\n    return nn.Sequential(nn.Linear(4, 4, bias=False))\n"
    )
    np.save(tmp_path / "held.npy", HELD_OUT)
    np.save(tmp_path / "train.npy", TRAINING)
    content = {
        "trajectory": {"folder": ".", "model": "model.py:build", "only": "step_1.pt"},
        "inputs": {
            "tokens": "held.npy",
            "score": "last:1",
            "training": {"tokens": "train.npy"},
        },
        "observables": [],
    }
    sets = make_sources(content, tmp_path)[1]
    assert list(sets) == ["text", "training"]
    assert (sets["training"].ids == TRAINING).all()
    assert sets["training"].scored.sum() == len(TRAINING)


def own_steps(there, folder):
    """Return from which checkpoint on 95 % of each set are right, at every later one."""
    run = og.Trajectory.from_folder(folder, there["model"])
    right = {"training": [], "held_out": []}
    for step in run.steps:
        model = run[step].model()
        for name, shares in right.items():
            rows = torch.tensor(there[name])
            said = model(rows)[:, 1].argmax(-1)
            shares.append(float((said == rows[:, 2]).float().mean()))
    below = (np.array([right["training"], right["held_out"]]) < 0.95)[:, ::-1]
    since = below.shape[1] - below.argmax(axis=1)
    return tuple(float(run.steps[i]) for i in since)


@pytest.mark.slow
def test_the_guide_says_both_steps_of_sums(tmp_path, monkeypatch):
    (block,) = re.findall(
        r"```python\n(.*?)```", (GUIDES / "answers.md").read_text(), re.S
    )
    monkeypatch.chdir(tmp_path)
    there = {}
    exec(block, there)
    claims = claims_of(there["result"])
    memorised, generalises = claims[Kind.MEMORISED], claims[Kind.GENERALISES]
    assert memorised.certainty is generalises.certainty is Certainty.SURE
    assert memorised.since_high < generalises.since_low
    # An own loop over what was recorded gives the same steps.
    steps = own_steps(there, tmp_path / "runs" / "sums")
    assert (memorised.since, generalises.since) == steps
    assert (tmp_path / "sums.html").is_file()
