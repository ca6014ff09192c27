"""A study of one model: from a folder, a file or a checkpoint to a page without a time axis."""

import math
import re

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

from helpers.tiny_models import gpt2
from ontogeny.claims import Certainty, Kind, Reason
from ontogeny.comparison import compare, summary_lines
from ontogeny.errors import ArgumentError
from ontogeny.figures import Section
from ontogeny.inputs import Inputs
from ontogeny.quantities import Quantity
from ontogeny.report.first_screen.screen import first_screen
from ontogeny.report.page.html import render_page
from ontogeny.start import Wishes, propose
from ontogeny.start.first_checkpoint import begins_trained
from ontogeny.start.written import study_text
from ontogeny.study import read_study
from ontogeny.summary.summarise import summarise
from ontogeny.trajectory import Trajectory
from ontogeny.trajectory.audit.weight_values import is_initialisation
from ontogeny.trajectory.hub.names import choose
from ontogeny.trajectory.untrained import untrained_like
from ontogeny.words.content import read_content
from ontogeny.words.one_model import claims_of_one_model
from ontogeny.words.sections import section_sentences

COURSE = re.compile(
    r"too few checkpoints|by step|born|half-change|was not run|at every step|control",
    re.I,
)


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    home = tmp_path_factory.mktemp("one")
    torch.manual_seed(0)
    gpt2().save_pretrained(home / "model")
    rng = np.random.default_rng(0)
    np.save(home / "ids.npy", rng.integers(1, gpt2().config.vocab_size, (24, 12)))
    wishes = Wishes(
        str(home / "model"), texts=[str(home / "ids.npy")], tokenizer="none"
    )
    proposal = propose(wishes, home)
    file = home / "study.toml"
    file.write_text(study_text(proposal, "ontogeny run study.toml"))
    assert proposal.preset.name == "one-model"
    return read_content(read_study(file).run(home / "study"))


@pytest.mark.parametrize("name", ["model", "checkpoint-80"])
def test_a_folder_or_file_that_is_one_model_is_one_checkpoint(tmp_path, name):
    gpt2().save_pretrained(tmp_path / name)
    step = 80 if name == "checkpoint-80" else 0
    for source in (tmp_path / name, tmp_path / name / "model.safetensors"):
        run = Trajectory.from_folder(source)
        assert run.steps.tolist() == [step]
        assert type(run[step].model()).__name__ == "GPT2LMHeadModel"
        assert not run.audit()


def test_one_file_without_a_step_in_its_name_opens(tmp_path):
    torch.save(nn.Linear(3, 2).state_dict(), tmp_path / "weights.pt")
    run = Trajectory.from_folder(tmp_path / "weights.pt", model=lambda: nn.Linear(3, 2))
    assert run.steps.tolist() == [0]


def test_a_repository_with_a_main_branch_alone_is_one_model():
    assert choose({"main": "a", "refs": "b"}, None, None, False, "o/n").names == {
        0: ("main", None)
    }
    steps = choose({"main": "a", "step10": "b"}, None, None, False, "o/n").names
    assert steps == {10: ("step10", None)}


def test_the_page_of_one_model_says_values_and_no_course(content):
    screen = first_screen(content)
    text = " ".join(f"{each.lead} {each.text}" for each in screen.sentences)
    assert screen.sentences
    assert not COURSE.search(f"{screen.heading} {text}")
    assert not content.rows
    said = {
        node.path: " ".join(one.text for one in section_sentences(content, node))
        for node in content.nodes
    }
    assert "uniform attention" in said["attention-entropy"]
    assert "isotropic" in said["effective-dimensions"]
    assert not any(COURSE.search(words) for words in said.values())


def test_nothing_is_said_to_hold_since_the_only_checkpoint(content):
    """Of bigrams it said that the loss is below theirs "from step 700", which it was long before."""
    assert content.claims
    assert all(math.isnan(claim.since) for claim in content.claims)


def test_the_page_of_one_model_has_no_chart_and_no_line_of_one_point(content):
    page = render_page(content)
    assert ' one-model">' in page
    assert 'id="chart"' not in page
    assert 'id="life" class="life still"' in page and "this model" in page
    kinds = {figure.kind for node in content.nodes for figure, _ in node.figures}
    assert "null" in kinds
    assert "curves" not in kinds


def test_two_single_models_are_compared_by_the_same_texts(tmp_path):
    rng = np.random.default_rng(0)
    of_text = {"hard": 5 + rng.normal(0, 1, 40), "easy": None, "alike": None}
    of_text["easy"] = of_text["hard"] - 0.2 + rng.normal(0, 0.01, 40)
    of_text["alike"] = of_text["hard"] + rng.normal(0, 0.3, 40)

    def one(values):
        arrays = {"loss": ("step", [values.mean()])} | {
            f"loss_{name}": (("step", "text"), row[None])
            for name, row in (("of_text", values), ("weights", np.ones(40)))
        }
        data = xr.Dataset(arrays, {"step": [0]}).assign_attrs(role="track")
        return xr.DataTree.from_dict({"loss": data})

    runs = {name: one(values) for name, values in of_text.items()}
    both = compare({name: runs[name] for name in ("hard", "easy")})
    [ahead] = [c for c in read_content(both).claims if c.kind is Kind.AHEAD]
    assert (ahead.certainty, ahead.subject.label) == (Certainty.SURE, "easy")
    assert ahead.value == pytest.approx(0.2, abs=0.01) and ahead.low > 0.19
    assert [beside.name for beside in ahead.beside] == ["hard"]
    [heading, *more] = summary_lines(both)
    assert re.fullmatch(r"Easy ends 0\.\d+ nats below hard", heading, re.I), heading
    assert not any(COURSE.search(line) for line in more)
    unsure = compare({name: runs[name] for name in ("hard", "alike")})
    [ahead] = [c for c in read_content(unsure).claims if c.kind is Kind.AHEAD]
    assert (ahead.certainty, ahead.reason) == (Certainty.OPEN, Reason.WITHIN_NOISE)
    content = read_content(unsure)
    told = [
        one.text for node in content.nodes for one in section_sentences(content, node)
    ]
    assert any("are not shown to differ" in text for text in told)


def test_a_value_is_above_a_null_only_if_its_interval_is():
    def said(stderr, draws=(1.0, 1.5)):
        data = xr.Dataset({"x": ("step", [2.0])}, {"step": [0]})
        if stderr is not None:
            data["x_stderr"] = ("step", [stderr])
        data["x_chance"] = ("step", "draw"), [draws]
        quantity = Quantity("x", "norm", rows="norm", nulls={"chance": "chance"})
        node = summarise(data, [quantity], Section("Norm", ""))
        [claim] = claims_of_one_model("norm", node, [quantity])
        return claim.certainty, claim.reason

    assert said(0.1) == (Certainty.SURE, None)
    assert said(0.5) == (Certainty.OPEN, Reason.WITHIN_CHANCE)
    # Without an interval nothing is sure, beside several draws neither.
    assert (
        said(None) == said(None, (1.5, 1.5)) == (Certainty.OPEN, Reason.NOISE_UNKNOWN)
    )
    assert said(None, (1.0, 2.5)) == (Certainty.OPEN, Reason.WITHIN_CHANCE)


def test_only_an_initialisation_stands_for_the_untrained_model():
    fresh, trained = gpt2(), gpt2()
    with torch.no_grad():
        for name, weight in trained.named_parameters():
            if "ln_" in name and name.endswith("weight"):
                weight += torch.randn(weight.shape)
    first = Trajectory.from_models({0: fresh})[0]
    assert is_initialisation(first)
    assert not is_initialisation(Trajectory.from_models({0: trained})[0])


@pytest.mark.parametrize(
    ("trained", "kind", "count", "steps"),
    [(True, "mirrored", 6, 3), (False, "turned", 3, 4)],
)
def test_controls_of_a_run_that_begins_trained_are_mirrored(
    tmp_path, trained, kind, count, steps
):
    torch.manual_seed(0)
    model = gpt2()
    for step in (0, 5):
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if trained and "ln_" in name and name.endswith("weight"):
                    weight += torch.randn(weight.shape)
        model.save_pretrained(tmp_path / "run" / f"checkpoint-{step}")
    np.save(
        tmp_path / "ids.npy",
        np.random.default_rng(0).integers(1, gpt2().config.vocab_size, (24, 12)),
    )
    given = {"texts": [str(tmp_path / "ids.npy")], "tokenizer": "none"}
    wishes = Wishes(str(tmp_path / "run"), **given)
    controls = propose(wishes, tmp_path).content["controls"]
    assert controls == {"kind": kind, "count": count, "steps": steps}
    chosen = Wishes(str(tmp_path / "run"), **given, sets=["controls.kind=turned"])
    assert propose(chosen, tmp_path).content["controls"]["kind"] == "turned"
    fewer = Wishes(
        str(tmp_path / "run"), **given, sets=["controls.count=2", "controls.steps=5"]
    )
    controls = propose(fewer, tmp_path).content["controls"]
    assert controls == {"kind": kind, "count": 2, "steps": 5}


class Pairs(nn.Module):
    """Predicts from the last token alone, without layers of norms."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 8)
        self.out = nn.Linear(8, 8)

    def forward(self, ids):
        return self.out(self.embed(ids))


@pytest.mark.parametrize(
    ("first", "trained", "kind"),
    [(3, True, "mirrored"), (3, False, "turned"), (0, True, "turned")],
)
def test_a_later_first_step_is_trained_if_it_predicts_better_than_a_guess(
    tmp_path, first, trained, kind
):
    """Weights without norms look like an initialisation, also in the middle of a run."""
    torch.manual_seed(0)
    ids = (np.arange(12) + np.arange(24)[:, None]) % 8  # each is followed by the next
    inputs = Inputs.from_tokens(ids, vocab_size=8)
    model = Pairs()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(40 if trained else 0):
        said = model(torch.tensor(ids))[:, :-1].reshape(-1, 8)
        loss = nn.functional.cross_entropy(said, torch.tensor(ids[:, 1:]).reshape(-1))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    run = Trajectory.from_models({first: model, first + 5: Pairs()})
    assert is_initialisation(run[first])
    found = begins_trained(run, str(tmp_path), inputs, "causal")
    assert found == (kind == "mirrored")


class Scaled(nn.Module):
    """A module with a parameter that nothing can reset."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * self.scale


def test_the_users_builder_makes_the_untrained_model():
    torch.manual_seed(0)
    model = Scaled()
    one, again = (untrained_like(model, 3, build=Scaled) for _ in range(2))
    assert torch.equal(one.scale, again.scale)
    assert not torch.equal(one.scale, model.scale)
    with pytest.raises(ArgumentError, match=r"no reset_parameters\(\)"):
        untrained_like(model)
    state = torch.get_rng_state()
    untrained_like(model, build=Scaled)
    assert torch.equal(state, torch.get_rng_state())


def test_a_builder_that_loads_weights_makes_no_untrained_model():
    trained = Scaled()

    def loads():
        module = Scaled()
        module.load_state_dict(trained.state_dict())
        return module

    with pytest.raises(ArgumentError, match="does not depend on the seed"):
        untrained_like(trained, build=loads)
