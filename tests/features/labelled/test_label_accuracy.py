"""Right labels of a classifier: plain counts, classes by name, and a run that learns or not."""

import copy
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
import xarray as xr
from transformers import BertConfig, BertForSequenceClassification
from transformers.modeling_outputs import SequenceClassifierOutput

import ontogeny as og
from ontogeny.features.labelled.permuted_labels import (
    claims_of_exchanges,
    exchanged,
    with_exchanged_labels,
)
from ontogeny.figures import Section
from ontogeny.observables import LabelAccuracy
from ontogeny.observables.variables import dataset
from ontogeny.quantities import Measured
from ontogeny.start import Wishes, propose
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.summarise import summarise
from ontogeny.tasks import train_tokenizer
from ontogeny.words.sentences import said
from ontogeny.words.subjects import Names
from ontogeny.words.voice import Voice

RNG = np.random.default_rng(0)
CONFIG = {
    "vocab_size": 30,
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 12,
    "num_labels": 3,
}


def model(seed=0, **options):
    torch.manual_seed(seed)
    return BertForSequenceClassification(BertConfig(**CONFIG | options)).eval()


def told(node):
    claims = claims_of_exchanges("labels", node)
    return " ".join(said([claim], Voice(), Names()).text for claim in claims)


def texts(labels, lengths=None):
    lengths = RNG.integers(3, 11, len(labels)) if lengths is None else lengths
    ids = [RNG.integers(5, 30, n).tolist() for n in lengths]
    return og.Inputs.from_tokens(ids, labels=labels)


def studied(models, inputs, folder, **options):
    study = og.Study(
        og.Trajectory.from_models(models), inputs, [LabelAccuracy()], noise=0
    )
    return study.run(folder, **options)


def test_accuracy_and_loss_are_those_of_a_plain_loop(tmp_path):
    inputs = texts(RNG.integers(0, 3, 50).tolist())
    models = {0: model(0), 5: model(1)}
    result = studied(models, inputs, tmp_path / "s")
    assert not len(result.problems()), result.problems()
    data = result["labels"].to_dataset()
    for step, each in models.items():
        right, losses = [], []
        for ids, mask, label in zip(
            inputs.ids, inputs.mask, inputs.labels, strict=True
        ):
            with torch.no_grad():
                (logits,) = each(torch.tensor(ids[mask])[None]).logits
            right.append(int(logits.argmax()) == label)
            losses.append(float(-logits.log_softmax(0)[label]))
        at = data.sel(step=step)
        assert float(at.accuracy) == pytest.approx(np.mean(right))
        assert float(at.loss) == pytest.approx(np.mean(losses), rel=1e-5)
        for number in range(3):
            share = np.mean(np.array(right)[inputs.labels == number])
            assert float(
                at.of_class.sel({"class": f"LABEL_{number}"})
            ) == pytest.approx(share)
    majority = np.bincount(inputs.labels).max() / 50
    assert data.accuracy_majority.values == pytest.approx([majority, majority])


def test_names_of_classes_are_looked_up_in_the_configuration(tmp_path):
    names = ["bad", "so-so", "good"]
    named = model(
        label2id={n: i for i, n in enumerate(names)}, id2label=dict(enumerate(names))
    )
    numbers = RNG.integers(0, 3, 30)
    lengths = RNG.integers(3, 11, 30)
    first = texts([names[n] for n in numbers], lengths)
    second = og.Inputs.from_tokens(
        [row[mask].tolist() for row, mask in zip(first.ids, first.mask, strict=True)],
        labels=numbers.tolist(),
    )
    models = {0: named, 1: copy.deepcopy(named)}
    by_name, by_number = (
        studied(models, inputs, tmp_path / str(i))["labels"].to_dataset()
        for i, inputs in enumerate((first, second))
    )
    assert by_name.accuracy.equals(by_number.accuracy)
    assert by_name["class"].values.tolist() == names


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 1, 3, 0], "labels go from 0 to 3, but the model has 3 classes"),
        (["fine", "bad", "fine", "bad"], "names of the model's classes, .*got 'bad'"),
    ],
)
def test_labels_that_the_model_has_not_are_refused(tmp_path, labels, message):
    result = studied(
        {0: model(), 1: model()}, texts(labels), tmp_path / "s", keep_going=True
    )
    problems = result.problems()
    assert len(problems) and re.search(message, problems[0].why)


def rule_models(share):
    """Models whose answer is the first token's parity for a share of what they see."""

    class Rule(torch.nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.embedding = torch.nn.Embedding(30, 2)
            target = torch.nn.functional.one_hot(torch.arange(30) % 2, 2).float()
            noise = torch.randn(30, 2, generator=torch.Generator().manual_seed(1))
            self.embedding.weight = torch.nn.Parameter(weight * target + noise)

        def forward(self, input_ids, attention_mask=None):
            return SequenceClassifierOutput(logits=self.embedding(input_ids)[:, 0])

    return {step: Rule(share * step) for step in range(6)}


@pytest.mark.parametrize(("share", "learned"), [(1.0, True), (0.0, False)])
def test_a_rule_that_is_learned_is_called_so_and_noise_is_not(tmp_path, share, learned):
    ids = RNG.integers(5, 30, (200, 4))
    inputs = og.Inputs.from_tokens(ids.tolist(), labels=(ids[:, 0] % 2).tolist())
    result = og.Study(
        og.Trajectory.from_models(rule_models(share)),
        inputs,
        [LabelAccuracy()],
        controls=3,
    ).run(tmp_path / "s")
    data = result["labels"].to_dataset()
    assert (
        bool(data.learned.values[data.row.values.tolist().index("accuracy")]) == learned
    )


def trained(rate, shuffled, rank=None):
    """A BERT that was trained on which half of the vocabulary a text begins with, by step."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 30, (256, 4))
    labels = (ids[:, 0] > 15).astype(int)
    train = rng.permutation(labels[:128]) if shuffled else labels[:128]
    network = model(num_labels=2)
    if rank is not None:
        peft = pytest.importorskip("peft")
        settings = peft.LoraConfig(
            r=rank,
            lora_alpha=2 * rank,
            target_modules=["query", "value", "dense"],
            task_type="SEQ_CLS",
        )
        network = peft.get_peft_model(network, settings).eval()
    optimiser = torch.optim.Adam(
        [p for p in network.parameters() if p.requires_grad], lr=rate
    )
    models = {}
    for step in range(61):
        if step % 30 == 0:
            now = copy.deepcopy(network)
            models[step] = now if rank is None else now.merge_and_unload()
        optimiser.zero_grad()
        network(
            input_ids=torch.tensor(ids[:128]), labels=torch.tensor(train)
        ).loss.backward()
        optimiser.step()
    return models, og.Inputs.from_tokens(
        ids[128:].tolist(), labels=labels[128:].tolist()
    )


@pytest.mark.slow
@pytest.mark.parametrize("rank", [None, 4], ids=["full", "LoRA"])
@pytest.mark.parametrize(
    ("rate", "shuffled", "learned"),
    [(3e-2, False, True), (3e-2, True, False), (0.0, False, False)],
    ids=["labels", "shuffled labels", "learning rate 0"],
)
def test_training_on_labels_alone_is_learning_them(
    tmp_path, rate, shuffled, learned, rank
):
    models, held_out = trained(rate, shuffled, rank)
    study = og.Study(
        og.Trajectory.from_models(models),
        held_out,
        [LabelAccuracy()],
        noise=0,
        controls=3,
    )
    data = study.run(tmp_path / "s")["labels"].to_dataset()
    majority = float(data.accuracy_majority[-1])
    error = np.sqrt(majority * (1 - majority) / len(held_out))
    assert (float(data.accuracy[-1]) > majority + 3 * error) == learned
    assert data.learned.values.tolist() == [learned]


@pytest.mark.parametrize(("column", "labelled"), [("label", True), ("x", False)])
def test_a_classifier_is_studied_with_the_labels_of_its_texts(
    tmp_path, column, labelled
):
    for step in (0, 5):
        model(step, vocab_size=270).save_pretrained(
            tmp_path / "run" / f"checkpoint-{step}"
        )
    lines = ["good film", "bad film", "so so", "a fine one"] * 6
    train_tokenizer(lines, vocab_size=270).save_pretrained(tmp_path / "run")
    rows = "".join(f"{line},{i % 3}\n" for i, line in enumerate(lines))
    (tmp_path / "held.csv").write_text(f"sentence,{column}\n{rows}")
    wishes = Wishes(str(tmp_path / "run"), texts=[str(tmp_path / "held.csv")])
    proposal = propose(wishes, tmp_path)
    kinds = [entry["kind"] for entry in proposal.content["observables"]]
    assert proposal.preset.name == "fine-tuning" and ("labels" in kinds) == labelled
    assert ("labelled 0 (8), 1 (8), 2 (8)" in " ".join(proposal.texts)) == labelled
    quick = propose(replace(wishes, preset="quick"), tmp_path)
    assert [e["kind"] for e in quick.content["observables"]].count("labels") == labelled
    if not labelled:
        assert "the texts have no labels" in proposal.left_out["labels"]
        assert "--set inputs.label=COLUMN" in quick.left_out["labels"]
        named = propose(replace(wishes, sets=[f"inputs.label={column}"]), tmp_path)
        assert "labels" in [entry["kind"] for entry in named.content["observables"]]


def ends(first, last, labels, controls=(), kind="turned"):
    """The node of an accuracy by what is answered at the first and last step."""

    def cells(*answers):
        pieces = [
            dataset(
                {
                    "accuracy": Measured.mean(a == labels, texts, {"majority": 0.5}),
                    **exchanged(a, labels, texts),
                }
            )
            for a in answers
        ]
        return xr.concat(pieces, xr.DataArray([0, 100], dims="step", name="step"))

    texts, observable = np.arange(len(labels)), LabelAccuracy()
    quantity = observable.quantities[:1]
    beside = {f"{kind} {k}": cells(first, other) for k, other in enumerate(controls)}
    data = with_controls(cells(first, last), beside, quantity, observable.compared)
    data = with_exchanged_labels(data)
    node = summarise(data, quantity, Section("Accuracy", "."))
    return with_verdicts({"labels": node})["labels"]


def answers(labels, right, rng):
    wrong = rng.permutation(len(labels)) < round((1 - right) * len(labels))
    return np.where(wrong, 1 - labels, labels)


def test_what_was_learned_of_labels_is_seen_however_bad_controls_get():
    rng = np.random.default_rng(1)
    labels = np.arange(250) % 2
    constant, good = np.ones_like(labels), answers(labels, 0.75, rng)
    bad = [answers(labels, right, rng) for right in (0.5, 0.43, 0.33)]
    assert ends(constant, good, labels, bad[:2]).learned.all()
    assert ends(constant, good, labels, bad).learned.all()


def test_answers_that_know_no_label_are_not_called_learned():
    rng = np.random.default_rng(2)
    labels = np.arange(250) % 2
    chance = [answers(labels, 0.5, rng) for _ in range(3)]
    first = answers(labels, 0.35, rng)  # from below chance to one label
    assert not ends(first, np.ones_like(labels), labels).learned.any()
    assert not ends(first, chance[0], labels, chance[1:]).learned.any()
    # With many texts a lucky direction is beyond the noise of texts, and still luck.
    many = np.arange(5000) % 2
    lucky = [answers(many, 0.5 + luck, rng) for luck in (0.05, -0.2, 0.2, 0.1)]
    node = ends(np.ones_like(many), lucky[0], many, lucky[1:])
    assert float(node.accuracy_p_gain[-1]) == 0.001 and float(node.lead[0]) > 5
    assert not node.learned.any()


def test_how_lucky_a_classifier_is_is_not_known_without_control_runs():
    labels = np.arange(250) % 2
    right = answers(labels, 0.9, np.random.default_rng(4))
    node = ends(np.ones_like(labels), right, labels)
    assert "accuracy_p_learned" not in node and not node.learned.any()
    assert "two control runs or more would show" in told(node)


def test_a_classifier_that_knew_its_labels_is_judged_by_pairs_of_mirrored_runs():
    rng = np.random.default_rng(3)
    labels = np.arange(1000) % 2
    first = answers(labels, 0.7, rng)
    better = np.where(np.arange(1000) < 250, labels, first)
    pairs = [np.where(rng.random(1000) < 0.02, 1 - first, first) for _ in range(6)]
    assert ends(first, better, labels, pairs, "mirrored").learned.all()
    assert not ends(first, first, labels, pairs, "mirrored").learned.any()
    alone = ends(first, better, labels)
    assert "accuracy_p_learned" not in alone and not alone.learned.any()
    assert "pairs of mirrored control runs judge the gain" in told(alone)
