"""When performance is called learned: by renamed words, or by texts and the luck of motion."""

import numpy as np
import pytest
import torch
import xarray as xr
from scipy import stats
from torch import nn

from helpers.claimed import certainties, claims, spoken
from ontogeny.capture.loss import LossCollector
from ontogeny.capture.reading import read
from ontogeny.capture.renaming import DRAWS, RenamedWords, renamings
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.features.predictions.loss import Loss
from ontogeny.figures import Section
from ontogeny.inputs import Inputs
from ontogeny.needs import Losses
from ontogeny.quantities import Quantity
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.learning import controls_needed
from ontogeny.summary.summarise import summarise

LEVEL = np.full(4, 0.05)
ACCURACY = Quantity(
    "accuracy",
    "accuracy",
    rows="accuracy",
    better="higher",
    beats="majority",
    nulls={"majority": "most frequent label"},
)


class Pairs(nn.Module):
    """Predicts each word from the one before it."""

    def __init__(self, words, width=8):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Sequential(nn.Embedding(words, width), nn.Linear(width, words))

    def forward(self, input_ids, attention_mask=None):
        return self.table(input_ids)


def padded():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 12, 20)
    mask = np.arange(12) < lengths[:, None]
    ids = np.where(mask, rng.integers(2, 30, (20, 12)), 0)
    ids[:, 0] = 1
    return Inputs.from_tokens(ids, mask=mask, special_ids=[1], vocab_size=30)


def test_renamed_losses_are_those_of_renamed_targets_in_every_batching():
    inputs, model = padded(), Pairs(30)
    need = Losses(objective="causal")
    found = read(model, [need], {"text": inputs})[need]["renamed"].values
    logits = model(torch.tensor(inputs.ids)).log_softmax(-1).detach().numpy()
    text, column = np.nonzero(inputs.ordinary & (np.arange(12) > 0))
    targets = inputs.ids[text, column]
    own = np.unique(targets)
    words = np.setdiff1d(np.arange(30), [1])
    table = renamings(own.astype(np.int64).tobytes(), words.astype(np.int64).tobytes())
    for draw in (0, 1, DRAWS):
        name = dict(zip(own, table[draw], strict=True))
        costs = [
            -logits[i, j - 1, name[inputs.ids[i, j]]]
            for i, j in zip(text, column, strict=True)
        ]
        assert found[draw] == pytest.approx(np.mean(costs), abs=1e-5)
    assert all(len(set(row)) == len(own) and 1 not in row for row in table.tolist())


def test_a_vocabulary_of_200_000_takes_a_table_of_the_targets_alone():
    inputs = Inputs.from_tokens(np.random.default_rng(0).integers(0, 200_000, (3, 20)))
    renamed = RenamedWords(inputs, inputs.ordinary)
    row, column = np.nonzero(inputs.ordinary)
    for at in range(0, len(row), 20):
        chunk = slice(at, at + 20)
        renamed.add(
            row[chunk], column[chunk], torch.full((20, 200_000), -np.log(200_000))
        )
    assert renamed.losses() == pytest.approx(np.log(200_000), rel=1e-5)
    assert renamed._table.numel() * 4 < 300_000


def node_of_loss(
    first, last, renamed_gain, blind=7.0, texts=40, controls=(), unchanged=0
):
    """A run of two checkpoints whose renamed losses gain about as much as given."""
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.1, texts)
    of_text = np.stack([first + noise, last + noise + rng.normal(0, 0.01, texts)])
    renamed = np.stack(
        [
            np.full(DRAWS + 1, first),
            first - renamed_gain + rng.normal(0, 0.1, DRAWS + 1),
        ]
    )
    renamed[1, 0] = last
    renamed[0, 1:] += rng.normal(0, 0.02, DRAWS)
    renamed[:, 1 : unchanged + 1] = renamed[:, :1]
    data = xr.Dataset(
        {
            "loss": ("step", of_text.mean(1)),
            "loss_of_text": (("step", "text"), of_text),
            "loss_weights": (("step", "text"), np.ones_like(of_text)),
            "loss_uniform": ("step", [blind, blind]),
            "loss_renamed": (("step", "renaming"), renamed),
        },
        {"step": [0, 100]},
    )
    beside = {
        f"turned {k}": xr.Dataset({"loss": ("step", [first, end])}, {"step": [0, 100]})
        for k, end in enumerate(controls)
    }
    loss = Loss()
    node = loss.summarise(with_controls(data, beside, loss.quantities), {})
    return with_verdicts({"loss": node})["loss"]


@pytest.mark.parametrize("controls", [(), (7.8,), (7.8, 9.3, 11.4), (7.1, 7.2, 7.0)])
def test_the_loss_is_learned_with_any_number_of_controls_however_bad_they_get(controls):
    node = node_of_loss(6.95, 1.76, -2.0, controls=controls)
    assert node.learned.all() and node.beyond.all() and node.changed.all()
    assert float(node.loss_p_learned) == 0.001 and float(node.loss_learned_from) == 100
    # Controls may move as far the other way: no claim stands beside the p-value of that test.
    sure = [claim for claim in claims(node) if claim.certainty is Certainty.SURE]
    assert {Kind.CHANGED, Kind.BEYOND_MOTION, Kind.LEARNED} <= {c.kind for c in sure}
    assert [claim for claim in sure if claim.p_value > 0.05] == []


def test_of_three_kinds_of_words_renaming_tells_nothing_and_controls_judge():
    """A sixth of all renamings of a chain of three states leave its texts as they are."""
    runs = (1.14, 1.2, 1.13, 1.17, 1.16, 1.13)
    node = node_of_loss(1.15, 0.75, -0.1, 1.1, controls=runs, unchanged=DRAWS // 6)
    assert "loss_p_learned" not in node and node.learned.all()
    alone = node_of_loss(1.15, 0.75, -0.1, 1.1, unchanged=DRAWS // 6)
    assert not alone.learned.any() and np.isnan(float(alone.p_learned[0]))


@pytest.mark.parametrize(
    ("last", "renamed_gain", "blind"),
    [(6.9, 0.1, 7.0), (6.9, -0.5, 6.8), (6.95, 0.0, 7.0), (8.0, -3.0, 7.0)],
    ids=["as renamed words", "above a uniform guess", "no motion", "worse"],
)
def test_a_loss_that_learned_nothing_is_not_learned(last, renamed_gain, blind):
    node = node_of_loss(6.95, last, renamed_gain, blind, controls=(7.5, 7.6, 7.9))
    assert not node.learned.any() and float(node.p_learned[0]) > 0.05


def test_a_first_checkpoint_that_knows_the_words_is_not_judged_by_renaming():
    rng = np.random.default_rng(0)
    node = node_of_loss(3.0, 2.9, -1.0)
    renamed = node.loss_renamed.values.copy()
    renamed[:, 1:] = 12 + rng.normal(0, 0.1, (2, DRAWS))
    again = Loss().derive(
        node.drop_vars("loss_p_learned").assign(
            loss_renamed=(("step", "renaming"), renamed)
        ),
        {},
    )
    assert float(again.loss_trained_start) == 1 and "loss_p_learned" not in again


def accuracies(first, last, controls, count=800, majority=0.5, seed=0):
    """Accuracies of a classifier on so many texts."""
    rng = np.random.default_rng(seed)

    def run(*levels):
        right = [np.arange(count) < level * count for level in levels]
        of_text = np.stack([rng.permutation(each).astype(float) for each in right])
        return xr.Dataset(
            {
                "accuracy": ("step", of_text.mean(1)),
                "accuracy_of_text": (("step", "text"), of_text),
                "accuracy_weights": (("step", "text"), np.ones_like(of_text)),
                "accuracy_majority": majority,
            },
            {"step": [0, 100]},
        )

    beside = {
        f"turned {k}": run(first, first + change) for k, change in enumerate(controls)
    }
    data = with_controls(run(first, last), beside, [ACCURACY])
    node = summarise(data, [ACCURACY], Section("Accuracy", "."))
    return with_verdicts({"accuracy": node})["accuracy"]


def test_an_accuracy_far_above_the_majority_is_learned_with_three_controls():
    assert accuracies(0.511, 0.608, (-0.005, 0.016, 0.004)).learned.all()
    majority = accuracies(0.4, 0.608, (-0.005, 0.016, 0.004), majority=0.6)
    assert not majority.learned.any()  # it learned which label is frequent


def test_a_run_outside_its_controls_is_not_shown_and_what_would_decide_is_said():
    node = accuracies(0.5, 0.6, (-0.03, 0.085, 0.01))
    assert node.outside.all() and not node.learned.any() and not node.not_improved.any()
    [claim] = claims(node, Kind.LEARNED)
    assert claim.certainty is Certainty.OPEN
    assert claim.reason in (Reason.FEW_CONTROLS, Reason.FEW_TEXTS)


def test_more_controls_of_the_same_spread_are_counted():
    def rows(*changes, spreads=(1.0,)):
        last = [[-spread, 0.0, spread] for spread in spreads]
        return xr.Dataset(
            {
                "row_quantity": ("row", ["accuracy"] * len(spreads)),
                "can_learn": ("row", [True] * len(spreads)),
                "run_change": (("row", "run"), [[change] * 3 for change in changes]),
                "control_first": (("row", "run"), np.zeros((len(spreads), 3))),
                "control_last": (("row", "run"), last),
            }
        )

    few, many, never = (
        controls_needed(rows(change), LEVEL)[0] for change in (4.5, 3.0, 0.5)
    )
    assert few == 4 and many > 4 and np.isnan(never)
    agreeing, _ = controls_needed(rows(0.1, 0.0, spreads=(0.001, 1.4)), LEVEL)
    # By its own spread four would do, but the test pools that of layers.
    assert np.isnan(agreeing)


def test_own_frequencies_and_renamings_come_of_one_collector():
    inputs = padded()
    assert LossCollector(Pairs(30), inputs)._renamed is None
    assert LossCollector(Pairs(30), inputs, of_model=True)._renamed is not None


def test_what_is_learned_without_controls_is_not_said_to_be_motion():
    node = node_of_loss(6.95, 1.76, -2.0)
    assert certainties(node, Kind.LEARNED) == {Certainty.SURE: 1}
    [learned] = [text for text in spoken(node) if "by learning" in text]
    assert learned.startswith("Loss") and "motion" not in " ".join(spoken(node))


def test_of_mirrored_controls_only_luck_counts_and_not_harm():
    def judged(gains, kind):
        changes = {f"{kind} {k}": -gain for k, gain in enumerate(gains)}
        loss = Quantity("other", "loss", rows="loss", better="lower")

        def run(change):
            values = [3.0, 3.0 + change]
            return xr.Dataset(
                {"other": ("step", values), "other_stderr": 0.002}, {"step": [0, 9]}
            )

        beside = {name: run(change) for name, change in changes.items()}
        data = with_controls(run(-0.05), beside, [loss])
        node = summarise(data, [loss], Section("Loss", "."))
        return with_verdicts({"x": node})["x"]

    harm = (-12.0, -12.005, -3.0, -2.99, -7.003, -7.0)
    assert (
        judged(harm, "mirrored").learned.all()
        and not judged(harm, "turned").learned.any()
    )
    lucky = (-0.1, 0.04, -0.02, -0.09, 0.03, -0.08)
    assert not judged(lucky, "mirrored").learned.any()


def test_mirrored_controls_are_a_turned_one_and_its_mirror_image():
    from ontogeny.trajectory import Trajectory

    last = Pairs(12)
    with torch.no_grad():
        for parameter in last.parameters():
            parameter.add_(torch.randn_like(parameter))
    run = Trajectory.from_models({0: Pairs(12), 5: last})
    start = Pairs(12).state_dict()
    there, back, turned = (
        run.control(kind, seed)[5].model().state_dict()
        for kind, seed in (("mirrored", 2), ("mirrored", 3), ("turned", 1))
    )
    for name, first in start.items():
        torch.testing.assert_close(there[name], turned[name])
        torch.testing.assert_close(
            there[name] - first, first - back[name], atol=1e-5, rtol=1e-4
        )


def trained_start(
    gain, luck, harm=(3.0, 0.4, 7.0), *, kind="mirrored", diverged=False, jitter=0.0
):
    """A run that begins trained beside pairs of controls; a diverged end is finite in none.

    `jitter` is by how much the change of the loss as it is varies over texts, about the same mean.
    """
    rng = np.random.default_rng(0)
    start = 2.0 + rng.normal(0, 0.3, 40)
    of_text = np.stack([start, start - gain + rng.normal(0, 0.005, 40)])
    renamed = np.stack([9 + rng.normal(0, 0.1, DRAWS + 1) for _ in range(2)])
    renamed[:, 0] = of_text.mean(1)
    steps = [0, 9]
    if diverged:  # and a step before it at which no control was read
        steps = [0, 9, 12, 15]
        late, nothing = of_text[1] - 0.5 * gain, np.full(40, np.nan)
        of_text = np.stack([*of_text, late, nothing])
        renamed = np.stack([*renamed, renamed[1], np.full(DRAWS + 1, np.nan)])
    at_end, signs = np.arange(len(steps)) == 1, np.tile([1.0, -1.0], 20)
    data = {
        "loss": ("step", of_text.mean(1)),
        "loss_of_text": (("step", "text"), of_text + jitter * np.outer(at_end, signs)),
        "loss_calibrated": ("step", of_text.mean(1)),
        "loss_calibrated_of_text": (("step", "text"), of_text),
        "loss_inverse_temperature": ("step", np.ones(len(steps))),
        "loss_matched": ("step", of_text.mean(1)),
        "loss_matched_of_text": (("step", "text"), of_text),
        "loss_matched_weights": (("step", "text"), np.ones_like(of_text)),
        "loss_matched_blind": ("step", np.full(len(steps), 3.0)),
        "loss_weights": (("step", "text"), np.ones_like(of_text)),
        "loss_uniform": ("step", np.full(len(steps), 7.0)),
        "loss_renamed": (("step", "renaming"), renamed),
    }
    loss = Loss()
    ends = np.repeat(harm, 2) + np.array([*luck]) * 1.0 + 2.0
    beside = {
        f"{kind} {k}": xr.Dataset(
            {name: ("step", [2.0, end]) for name in ("loss", *loss.compared)},
            {"step": [0, 9]},
        )
        for k, end in enumerate(ends)
    }
    node = with_controls(
        xr.Dataset(data, {"step": steps}), beside, loss.quantities, loss.compared
    )
    return with_verdicts({"loss": loss.summarise(node, {})})["loss"]


LUCKS = [np.array([1, -1, -1, 1, 0.5, -0.5]) * size for size in (0.001, 0.05)]


def test_a_trained_start_is_judged_by_what_it_costs_to_tell_words_apart():
    small, large = LUCKS
    node = trained_start(0.02, small)
    assert (
        node.loss_trained_start == 1
        and node.loss_p_learned < 0.01
        and node.learned.all()
    )
    assert not trained_start(0.02, large).learned.any()
    assert not trained_start(-0.02, small).learned.any()


def test_where_the_last_checkpoint_diverged_the_last_shared_step_is_judged_and_said():
    node = trained_start(0.02, LUCKS[0], diverged=True)
    assert node.learned.all() and node.loss_judged_at == 9
    assert not trained_start(0.02, LUCKS[1], diverged=True).learned.any()


@pytest.mark.parametrize("kind", ["mirrored", "turned"])
def test_a_trained_start_better_than_all_its_controls_says_what_would_judge_it(kind):
    node = trained_start(0.12, LUCKS[1], kind=kind)
    assert node.outside.all() and not node.learned.any()
    [claim] = claims(node, Kind.LEARNED)
    assert claim.certainty is Certainty.OPEN
    assert all(beside.value > 0 > claim.value for beside in claim.beside)
    if kind == "mirrored":  # more of them would do
        assert claim.reason is Reason.FEW_CONTROLS
        assert claim.needed == float(node.controls_needed[0]) > 6
    else:  # no number of these would
        assert claim.reason is not Reason.FEW_CONTROLS and np.isnan(claim.needed)


def test_mirrored_controls_that_would_decide_are_counted_in_pairs():
    node = trained_start(0.12, LUCKS[1])
    needed = int(node.controls_needed[0])
    assert needed % 2 == 0 and needed > 6
    size = needed // 6 + 1
    more = trained_start(0.12, np.tile(LUCKS[1], size), np.tile((3.0, 0.4, 7.0), size))
    assert more.learned.all()


def test_where_texts_are_too_few_no_more_control_runs_are_advised():
    lucky, unsure = (trained_start(0.02, luck, jitter=0.2) for luck in LUCKS)
    for node in (lucky, unsure):
        assert node.outside.all() and not node.moved.any() and not node.learned.any()
        [claim] = claims(node, Kind.LEARNED)
        assert claim.reason in (Reason.WITHIN_NOISE, Reason.FEW_TEXTS) and np.isnan(
            claim.needed
        )
        assert claim.low < 0 < claim.high
    assert lucky.p_learned < 0.01 and lucky.controls_needed.item() == 6
    assert unsure.p_learned > 0.05 and np.isnan(unsure.controls_needed).all()


def test_a_trained_start_holds_its_gain_and_the_noise_of_it():
    sure, within = (
        trained_start(0.02, LUCKS[0], jitter=jitter) for jitter in (0.0, 0.2)
    )
    for node, expected in ((sure, Certainty.SURE), (within, Certainty.OPEN)):
        assert certainties(node, Kind.LEARNED) == {expected: 1}
        assert float(node.loss_gain) == pytest.approx(0.02, abs=0.003)
    gains = -np.diff(sure.loss_calibrated_of_text.values, axis=0)[0]
    error = gains.std(ddof=1) / len(gains) ** 0.5
    reach = stats.t.ppf(0.975, len(gains) - 1)
    assert float(sure.loss_gain_noise) == pytest.approx(reach * error, rel=1e-4)


def test_pairs_that_would_decide_are_counted_from_the_test_of_the_row():
    node = trained_start(0.12, LUCKS[1])
    likely, hopeless = (
        node.assign(p_learned_uncorrected=("row", [p])) for p in (0.051, 0.5)
    )
    assert controls_needed(likely, LEVEL)[0] == 8 <= controls_needed(node, LEVEL)[0]
    assert np.isnan(controls_needed(hopeless, LEVEL)).all()
