"""Audits from listings alone: what bytes prove about a suite, without a download."""

import hashlib
import json

import pytest
import torch
from safetensors.torch import load, save
from torch import nn

from helpers.hub_models import REPO, linear_files, tokenizer_files, two_shards
from helpers.hub_server import StandIn
from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError

CONFIG = json.dumps({"hidden_size": 8}).encode()


def found(trajectory):
    return [(f.kind, f.certainty, f.steps) for f in trajectory.audit()]


def five():
    """Step 2 repeats step 1, step 3 carries a shard of the last, step 4 is missing, the tokenizer
    changes at step 5; one more step before and after makes the spacing plain."""
    revisions = {}
    for step in (0, 1, 2, 3, 5, 6):
        first = {2: 1, 3: 6}.get(step, step)
        second = {2: 1}.get(step, step)
        vocabulary = {"c": 3} if step >= 5 else {}
        files = two_shards(10 + first, 100 + second)
        revisions[f"step{step}"] = {
            **files,
            **tokenizer_files(**vocabulary),
            "config.json": CONFIG,
        }
    return revisions


EXPECTED = [
    ("identical", "certain", (1, 2)),
    ("shared-shard", "certain", (3, 6)),
    ("tokenizer", "certain", (5,)),
    ("missing", "suspected", (4,)),
]


def test_exactly_the_planted_faults_are_found_on_the_hub_without_weights(tmp_path):
    with StandIn({REPO: five()}) as hub:
        trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)
        findings = trajectory.audit()
        assert [(f.kind, f.certainty, f.steps) for f in findings] == EXPECTED
        assert not [line for line in hub.lines if line.endswith(".safetensors")]
        assert hub.calls["tree"] == 5  # two of the six steps are one commit
    assert findings[1].message == (
        "step 3 carries model-00001-of-00002.safetensors of the last step, 6, byte for byte"
    )


def test_exactly_the_planted_faults_are_found_in_folders(tmp_path):
    for name, files in five().items():
        (tmp_path / name).mkdir()
        for file, data in files.items():
            (tmp_path / name / file).write_bytes(data)
    assert found(Trajectory.from_folder(tmp_path)) == EXPECTED


def test_five_steps_with_the_missing_one_asked_for_by_name(tmp_path):
    revisions = {
        name: files for name, files in five().items() if name not in ("step0", "step6")
    }
    revisions["step3"] = {**revisions["step3"], **_shard(revisions["step5"])}
    with StandIn({REPO: revisions}) as hub:
        trajectory = Trajectory.from_hub(
            REPO, [1, 2, 3, 4, 5], cache_dir=tmp_path, endpoint=hub.url
        )
        assert found(trajectory) == [
            ("identical", "certain", (1, 2)),
            ("shared-shard", "certain", (3, 5)),
            ("tokenizer", "certain", (5,)),
            ("missing", "certain", (4,)),
        ]


def _shard(files):
    name = "model-00001-of-00002.safetensors"
    return {name: files[name]}


def test_the_pattern_of_a_public_suite_is_reported_without_a_download(tmp_path):
    """154 branches of which 76 serve one payload and 10 another, in two shards each."""
    steps = [0, *(2**k for k in range(10)), *range(1000, 144_000, 1000)]
    late = [2000, *range(3000, 30_000, 1000), *range(96_000, 144_000, 1000)]
    early = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]

    def payload(step):
        owner = "late" if step in late else "early" if step in early else str(step)
        return {
            f"model-0000{k}-of-00002.safetensors": f"{owner} {k}".encode() * 50
            for k in (1, 2)
        } | {"config.json": CONFIG, **tokenizer_files()}

    with StandIn(
        {"lab/2.8b": {"main": {}, **{f"step{s}": payload(s) for s in steps}}}
    ) as hub:
        trajectory = Trajectory.from_hub(
            "lab/2.8b", cache_dir=tmp_path, endpoint=hub.url
        )
        findings = trajectory.audit()
        assert [(f.kind, f.certainty) for f in findings] == [
            ("identical", "certain")
        ] * 2
        assert {f.steps for f in findings} == {tuple(sorted(late)), tuple(early)}
        assert sorted(len(f.steps) for f in findings) == [10, 76]
        assert "(76 checkpoints)" in str(findings) and "(10 checkpoints)" in str(
            findings
        )
        # One for each commit.
        assert hub.calls == {"refs": 1, "tree": len(steps) - 75 - 9}
        thinner = trajectory.deduplicated()
        assert len(thinner) == 154 - 75 - 9 and 143_000 in thinner and 1 in thinner
        assert {f.kind for f in thinner.audit()} == {"duplicate-dropped"}
        # One for each commit.
        assert hub.calls == {"refs": 1, "tree": len(steps) - 75 - 9}
    assert not list(tmp_path.glob("models--*"))


def test_a_shard_served_by_two_steps_beside_the_last_is_one_finding(tmp_path):
    revisions = {f"step{s}": two_shards(s, 100 + s) for s in range(0, 70, 10)}
    for step in (20, 50):
        revisions[f"step{step}"].update(_shard(revisions["step60"]))
    with StandIn({REPO: revisions}) as hub:
        trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)
        assert found(trajectory) == [("shared-shard", "certain", (20, 50, 60))]
        (finding,) = trajectory.audit()
        assert finding.message.startswith("steps 20 and 50 carry model-00001-of-00002")


def test_a_shard_that_is_not_trained_is_no_finding(tmp_path):
    revisions = {f"step{s}": two_shards(7, 100 + s) for s in range(5)}
    with StandIn({REPO: revisions}) as hub:
        trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)
        assert found(trajectory) == []


def test_configurations_are_compared_and_fetched_only_where_the_listing_differs(
    tmp_path,
):
    def configured(step, **keys):
        return linear_files(
            step, **{"config.json": json.dumps({"layers": 2, **keys}).encode()}
        )

    revisions = {
        "step0": configured(0, transformers_version="4.1"),
        "step1": configured(1, transformers_version="4.2"),
        "step2": configured(2, transformers_version="4.2", rope=1.0),
        "step3": configured(3, transformers_version="4.2", rope=1.0),
    }
    with StandIn({REPO: revisions}) as hub:
        trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)
        (finding,) = trajectory.audit()
        assert (finding.kind, finding.steps) == ("configuration", (2,))
        assert "rope (absent) -> 1.0" in finding.message
        # The last one's is the same file as the one before.
        assert hub.calls["get"] == 3
        assert all(
            "config.json" in line for line in hub.lines if line.startswith("GET /lab")
        )


def test_numbers_are_looked_at_where_the_weights_are_here(tmp_path):
    files = linear_files(3)
    state = load(files["model.safetensors"])
    state["bias"][0] = torch.nan
    revisions = {"step1": linear_files(1), "step3": {"model.safetensors": save(state)}}
    with StandIn({REPO: revisions}) as hub:
        model = nn.Linear(3, 2)
        trajectory = Trajectory.from_hub(
            REPO, cache_dir=tmp_path, endpoint=hub.url, model=model
        )
        assert found(trajectory) == []
        trajectory[3].model()
        assert found(trajectory) == [("non-finite", "certain", (3,))]


def test_a_later_record_shows_that_two_revisions_were_exchanged(tmp_path):
    revisions = {f"step{s}": linear_files(s) for s in range(5)}
    with StandIn({REPO: revisions}) as hub:

        def open_it():
            return Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)

        recorded = open_it().fingerprints()
        one, other = revisions["step1"], revisions["step3"]
        hub.repos[REPO].update(step1=other, step3=one)
        findings = open_it().audit(recorded)
        assert [(f.kind, f.certainty, f.steps) for f in findings] == [
            ("exchanged", "certain", (1, 3))
        ]
        hub.repos[REPO]["step1"] = linear_files(77)
        assert [(f.kind, f.steps) for f in open_it().audit(recorded)] == [
            ("altered", (1,)),
            ("mislabelled", (3,)),
        ]


@pytest.mark.parametrize("last", [False, True])
def test_of_the_same_weights_one_checkpoint_is_kept_or_none_accepted(last):
    weights = {0: 1.0, 10: 2.0, 20: 2.0, 30: 3.0, 40: 2.0 if last else 4.0}
    trajectory = Trajectory.from_models(
        {s: {"w": torch.full((3,), v)} for s, v in weights.items()}
    )
    assert trajectory.deduplicated("mark").steps.tolist() == [0, 10, 20, 30, 40]
    dropped = trajectory.deduplicated("drop")
    assert dropped.steps.tolist() == ([0, 30, 40] if last else [0, 10, 30, 40])
    (finding,) = [f for f in dropped.audit() if f.kind == "duplicate-dropped"]
    assert finding.steps == ((10, 20) if last else (20,))
    with pytest.raises(CheckpointError, match="same weights: steps 10"):
        trajectory.deduplicated("raise")
    assert dropped.deduplicated("raise") is not None
    with pytest.raises(ArgumentError, match="'mark', 'drop', 'raise'"):
        trajectory.deduplicated("keep")


def test_digests_of_the_listing_are_those_of_the_bytes(tmp_path):
    files = linear_files(1)
    with StandIn({REPO: {"step1": files}}) as hub:
        trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, endpoint=hub.url)
        expected = hashlib.sha256(files["model.safetensors"]).hexdigest()
        assert trajectory.file_digests() == {1: {"model.safetensors": expected}}
