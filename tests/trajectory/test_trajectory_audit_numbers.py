"""Suspicions from numbers: found where planted, silent on simulated training."""

import copy
import itertools
import json

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform
from torch import nn

from ontogeny import Recorder, Trajectory
from ontogeny.trajectory.audit import early
from ontogeny.trajectory.audit.weight_values import misordered, suspicions

SIZE = 2000
LOG_STEPS = [0, *(2**k for k in range(10)), *range(1000, 15_001, 1000)]
EVEN_STEPS = list(range(0, 2500, 100))


def constant(step):
    return 1e-3


def warmup_and_decay(step):
    return 1e-3 * min(1.0, step / 300) * (1 - step / 20_000)


def spike(step):
    return 5e-3 if 1000 < step < 1040 else 1e-3


def simulated(steps, rate, kind, seed):
    """Return weights at `steps` of a run that drifts, walks at random, or settles into noise."""
    rng = np.random.default_rng(seed)
    weights, target = rng.normal(size=SIZE) * 0.02, rng.normal(size=SIZE)
    found, step = {}, 0
    for wanted in steps:
        length = wanted - step
        rates = np.array([rate(s) for s in range(step, wanted)])
        if kind == "drift":
            weights = weights + rates.sum() * np.sign(target) * 0.3
        if kind in ("drift", "walk"):
            weights = weights + np.sqrt((rates**2).sum()) * rng.normal(size=SIZE)
        if kind == "settle":
            forget = np.exp(-10 * rates.sum())
            weights = forget * weights + (1 - forget) * target
            weights = weights + 0.3 * np.sqrt(1 - forget**2) * rng.normal(size=SIZE)
        found[wanted] = weights.copy()
        step += length
    return found


def findings(weights):
    steps = list(weights)
    distances = squareform(pdist(np.array([weights[s] for s in steps])))
    return [(f.kind, f.steps) for f in suspicions(steps, distances)]


@pytest.mark.parametrize(
    "steps", [LOG_STEPS, EVEN_STEPS, [0, 10, 20, 1000, 1010, 1020, 9000]]
)
@pytest.mark.parametrize("rate", [constant, warmup_and_decay, spike])
@pytest.mark.parametrize("kind", ["drift", "walk", "settle"])
def test_simulated_training_raises_no_suspicion(steps, rate, kind):
    for seed in range(8):
        assert findings(simulated(steps, rate, kind, seed)) == []


@pytest.mark.parametrize(
    ("steps", "kind"),
    [
        (LOG_STEPS, "drift"),
        (EVEN_STEPS, "drift"),
        (LOG_STEPS, "walk"),
        (EVEN_STEPS, "walk"),
        (LOG_STEPS, "settle"),  # of weights that have settled, no order can be seen
    ],
)
def test_a_late_checkpoint_under_an_early_label_is_far_from_its_neighbours(steps, kind):
    for seed in range(5):
        weights = simulated(steps, warmup_and_decay, kind, seed)
        weights[steps[5]] = weights[steps[-3]] + 1e-6
        assert findings(weights) == [("far", (steps[5],))]


@pytest.mark.parametrize("kind", ["drift", "walk"])
@pytest.mark.parametrize("pair", [(4, 5), (6, 9), (2, 18), (0, 7), (9, 24)])
def test_two_exchanged_checkpoints_are_named(kind, pair):
    steps = EVEN_STEPS
    one, other = (steps[k] for k in pair)
    for seed in range(5):
        weights = simulated(steps, constant, kind, seed)
        weights[one], weights[other] = weights[other], weights[one]
        assert findings(weights) == [("order", (one, other))]


def best_exchange(distances):
    """Return the share and the places of the exchange that shortens the way most, if any does."""
    n, best, pair = len(distances), 0.8, None
    for i, j in itertools.combinations(range(n), 2):
        if (i, j) == (0, n - 1) or ({i, j} & {0, n - 1} and j - i < 2):
            continue  # both ends, or an end and its neighbour, are not distinguished
        order = list(range(n))
        order[i], order[j] = j, i
        edges = sorted({i - 1, i, j - 1, j} & {*range(n - 1)})
        if any(
            distances[near, other] >= 0.8 * distances[near, end]
            for end, other, near in ((i, j, 1), (j, i, n - 2))
            if end in (0, n - 1)
        ):
            continue  # no nearer to the neighbour than what is there
        before = sum(distances[k, k + 1] for k in edges)
        after = sum(distances[order[k], order[k + 1]] for k in edges)
        if before > 0 and after < best * before:
            best, pair = after / before, (i, j)
    return best, pair


class Counted(np.ndarray):
    """An array that counts how often it is asked for a part of it."""

    asked = 0

    def __getitem__(self, key):
        type(self).asked += 1
        return super().__getitem__(key)


@pytest.mark.parametrize(
    "pair", [None, (1, 2), (3, 4), (2, 4), (1, 18), (17, 18), (5, 11)]
)
@pytest.mark.parametrize("points", ["walk", "line", "equal in part", "equal"])
def test_the_best_of_all_exchanges_is_named_and_rows_are_weighed_at_once(points, pair):
    rng, n = np.random.default_rng(0), 20
    moved = {"walk": rng.normal(size=(n, 50)), "line": np.ones((n, 50))}
    moved["equal in part"] = moved["walk"] * (np.arange(n) > 8)[:, None]
    places = np.cumsum(moved.get(points, np.zeros((n, 50))), axis=0)
    if pair:
        places[list(pair)] = places[list(reversed(pair))]
    distances = squareform(pdist(places))
    Counted.asked = 0
    found = list(misordered(range(n), distances.view(Counted)))
    share, expected = best_exchange(distances)
    assert [f.steps for f in found] == [expected] * (expected is not None)
    assert all(f"is {share:.2g} times as long" in f.message for f in found)
    assert Counted.asked < 12 * n  # not for each pair


def test_a_jump_between_two_runs_is_found_at_the_seam():
    weights = simulated(EVEN_STEPS, constant, "walk", 0)
    other = simulated(EVEN_STEPS, constant, "walk", 1)
    mixed = {
        s: (weights if s < 1200 else other)[s] + (s >= 1200) * 2.0 for s in EVEN_STEPS
    }
    assert findings(mixed) == [("far", (1100, 1200))]


def in_memory(weights):
    return Trajectory.from_models(
        {s: {"w": torch.tensor(w, dtype=torch.float32)} for s, w in weights.items()}
    )


def test_the_audit_looks_at_stored_weights_and_passes_over_repeated_ones():
    weights = simulated(EVEN_STEPS, constant, "walk", 3)
    assert list(in_memory(weights).audit()) == []
    weights[EVEN_STEPS[7]] = weights[EVEN_STEPS[20]]
    assert kinds(in_memory(weights)) == [
        ("identical", "certain", (700, 2000)),
        ("far", "suspected", (700,)),  # so it is step 700 that has the wrong label
    ]


class Block(nn.Module):
    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.norm = nn.LayerNorm(64)
        self.linear = nn.Linear(64, 64)


def train(block, steps=1):
    optimizer = torch.optim.Adam(block.parameters(), lr=0.01)
    for _ in range(steps):
        out = block.linear(block.norm(torch.randn(32, 64)))
        optimizer.zero_grad()
        (out - 1).square().mean().backward()
        optimizer.step()
    return block


def kinds(trajectory):
    return [(f.kind, f.certainty, f.steps) for f in trajectory.audit()]


@pytest.mark.parametrize("init", ["default", "normal", "orthogonal", "truncated"])
def test_fresh_models_are_like_an_initialisation_and_trained_ones_are_not(init):
    fresh = Block(0)
    weight = fresh.linear.weight
    if init == "normal":
        nn.init.normal_(weight, std=0.02)
    elif init == "orthogonal":
        nn.init.orthogonal_(weight)
    elif init == "truncated":
        nn.init.trunc_normal_(weight, std=0.02, a=-0.04, b=0.04)
    trained = train(copy.deepcopy(fresh), 5)
    assert kinds(Trajectory.from_models({0: fresh, 10: trained})) == []
    later = train(copy.deepcopy(trained), 5)
    found = Trajectory.from_models({0: trained, 10: later}).audit()
    assert [(f.kind, f.certainty, f.steps) for f in found] == [
        ("initialisation", "suspected", (0,))
    ]
    assert "norm.weight" in found[0].message
    assert kinds(Trajectory.from_models({1: trained, 10: later})) == []


def test_heavy_tails_at_step_0_are_suspicious_without_any_norms():
    torch.manual_seed(0)
    heavy = {
        f"w{k}": torch.distributions.StudentT(3.0).sample((64, 64)) for k in range(5)
    }
    trajectory = Trajectory.from_models(
        {0: heavy, 1: {n: w + 1 for n, w in heavy.items()}}
    )
    (finding,) = trajectory.audit()
    assert finding.kind == "initialisation" and "kurtosis" in finding.message


def test_an_embedding_that_was_enlarged_alone_is_not_suspicious():
    torch.manual_seed(0)
    enlarged = torch.cat([torch.randn(40, 16), 1e-4 * torch.randn(260, 16)])
    matrices = {"embed": enlarged, "w": torch.randn(64, 64)}
    trajectory = Trajectory.from_models(
        {0: matrices, 1: {n: t + 1 for n, t in matrices.items()}}
    )
    assert list(trajectory.audit()) == []


def record(folder, steps=6):
    recorder, model = Recorder(folder, every=1), Block(0)
    for step in range(steps):
        recorder(step, model)
        train(model)


def swap(folder, one, other):
    first, second = folder / f"checkpoint-{one}", folder / f"checkpoint-{other}"
    first.rename(folder / "aside")
    second.rename(first)
    (folder / "aside").rename(second)


def test_the_recorders_note_shows_exchanged_mislabelled_and_altered_steps(tmp_path):
    record(tmp_path)
    swap(tmp_path, 1, 4)
    proved, *suspected = kinds(Trajectory.from_folder(tmp_path, model=Block(0)))
    assert proved == ("exchanged", "certain", (1, 4))
    assert suspected == [("order", "suspected", (1, 4))]
    weights = tmp_path / "checkpoint-2" / "model.safetensors"
    (tmp_path / "checkpoint-1" / "model.safetensors").write_bytes(weights.read_bytes())
    found = Trajectory.from_folder(tmp_path, model=Block(0)).audit()
    assert [(f.kind, f.steps) for f in found] == [
        ("identical", (1, 2)),
        ("mislabelled", (1,)),
        ("mislabelled", (4,)),
    ]


def test_a_recording_that_was_changed_afterwards_is_altered(tmp_path):
    from safetensors.torch import load_file, save_file

    record(tmp_path)
    path = tmp_path / "checkpoint-3" / "model.safetensors"
    state = load_file(path)
    state["linear.bias"][0] += 1
    save_file(state, path)
    found = kinds(Trajectory.from_folder(tmp_path, model=Block(0)))
    assert found == [("altered", "certain", (3,))]


def trainer_folder(folder, losses, steps=range(0, 800, 100)):
    for step in steps:
        path = folder / f"checkpoint-{step}"
        path.mkdir(parents=True)
        torch.manual_seed(step)
        from safetensors.torch import save_file

        save_file({"w": torch.randn(4, 4)}, path / "model.safetensors")
        history = [{"step": s, "loss": loss} for s, loss in losses.items() if s <= step]
        state = {
            "global_step": step,
            "log_history": [*history, {"step": step, "eval_loss": 1.0}],
        }
        (path / "trainer_state.json").write_text(json.dumps(state))


SMOOTH = {s: 8.0 / (1 + s / 200) + 0.01 * ((s // 10) % 3) for s in range(10, 800, 10)}


def test_the_trainers_own_state_shows_exchanged_folders(tmp_path):
    trainer_folder(tmp_path, SMOOTH)
    assert kinds(Trajectory.from_folder(tmp_path)) == []
    swap(tmp_path, 200, 500)
    found = Trajectory.from_folder(tmp_path).audit()
    assert [(f.kind, f.certainty, f.steps) for f in found] == [
        ("exchanged", "certain", (200, 500))
    ]
    assert "trainer_state.json" in found[0].message


def test_a_loss_out_of_order_is_suspicious_wherever_it_is_logged(tmp_path):
    bumped = {s: v + (3.0 if 400 < s <= 500 else 0.0) for s, v in SMOOTH.items()}
    trainer_folder(tmp_path / "trainer", bumped)
    found = Trajectory.from_folder(tmp_path / "trainer").audit()
    assert [(f.kind, f.certainty, f.steps) for f in found] == [
        ("loss", "suspected", (500,))
    ]
    trainer_folder(tmp_path / "own", {})
    log = {"step": list(bumped), "loss": list(bumped.values())}
    (tmp_path / "own" / "training_log.json").write_text(json.dumps(log))
    assert kinds(Trajectory.from_folder(tmp_path / "own")) == [
        ("loss", "suspected", (500,))
    ]


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"log_history": 3}', '{"step": [1], "loss": []}']
)
def test_a_log_that_cannot_be_read_says_nothing(tmp_path, content):
    trainer_folder(tmp_path, {})
    (tmp_path / "checkpoint-700" / "trainer_state.json").write_text(content)
    (tmp_path / "training_log.json").write_text(content)
    assert kinds(Trajectory.from_folder(tmp_path)) == []


def trained(seed, steps, size=40):
    """Return states of a run that moves half as far as it began with at every checkpoint."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.normal(size=(size, size)) for name in "abc"}
    for step in steps:
        yield (
            step,
            {
                f"{n}.weight": torch.tensor(w, dtype=torch.float32)
                for n, w in weights.items()
            },
        )
        weights = {
            name: w + 0.5 * rng.normal(size=w.shape) for name, w in weights.items()
        }


@pytest.mark.parametrize(
    ("first", "second", "seams", "remedy"),
    [
        ([0, 10, 20], [30, 40], (30,), "--exclude 30.pt --exclude 40.pt"),
        ([0, 20, 40], [10, 30], (10, 20, 30, 40), "--exclude 10.pt --exclude 30.pt"),
        ([0], [10], (10,), "--exclude 10.pt"),
        (list(range(0, 100, 10)), [], (), ""),
    ],
)
def test_another_run_is_named_with_what_leaves_it_out(
    tmp_path, first, second, seams, remedy
):
    for seed, steps in enumerate((first, second)):
        for step, state in trained(seed, steps):
            torch.save(state, tmp_path / f"step_{step}.pt")
    found = early(Trajectory.from_folder(tmp_path, nn.Module).checkpoints)
    assert tuple(f.steps[0] for f in found) == seams
    assert {f.kind for f in found} <= {"restart"}
    pasted = remedy.replace("--exclude ", "--exclude step_")
    assert all(
        f.message.endswith(
            f"another run; if these are two runs, leave one out: {pasted}"
        )
        for f in found
    )
    if seams:
        options = pasted.split("--exclude ")[1:]
        rest = Trajectory.from_folder(
            tmp_path, nn.Module, exclude=[o.strip() for o in options]
        )
        assert early(rest.checkpoints) == []


def test_copies_are_seen_before_anything_is_computed(tmp_path):
    states = [state for _, state in trained(0, (1, 2, 3))]
    for step, which in ((1, 0), (2, 1), (3, 2), (4, 2), (5, 0)):
        torch.save(states[which], tmp_path / f"step_{step}.pt")
    torch.save(states[1], tmp_path / "best.pt")
    torch.save(states[2], tmp_path / "final.pt")
    torch.save(
        {name: value + 1 for name, value in states[2].items()}, tmp_path / "ema.pt"
    )
    run = Trajectory.from_folder(tmp_path, nn.Module)
    assert [f.message for f in early(run.checkpoints, run.catalogue, run.path)] == [
        "steps 3 and 4 hold the same weights, byte for byte",
        "steps 1 and 5 hold the same weights, byte for byte",
        "best.pt, which was left out, holds the weights of step 2, byte for byte",
        "final.pt, which was left out, holds the weights of step 4, byte for byte",
    ]
    assert early(run.select(steps=[1, 2, 3]).checkpoints) == []
