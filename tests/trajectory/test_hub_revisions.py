"""Trajectories from the Hub: the real client against a stand-in server and against a cache."""

import json
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import huggingface_hub.constants
import pytest
import torch
from torch import nn

from helpers.hub_models import (
    REPO,
    bin_files,
    linear,
    linear_files,
    model_files,
    neox,
    tokenizer_files,
    two_shards,
)
from helpers.hub_server import StandIn, build_cache, commit_of
from ontogeny import Trajectory
from ontogeny.errors import ArgumentError, CheckpointError
from ontogeny.trajectory import NotDownloadedError, Prefetch, UnknownRevisionError
from ontogeny.trajectory.hub import listings
from ontogeny.trajectory.hub.revision import HubRevision

pytestmark = pytest.mark.slow

STEPS = (0, 1, 2, 16, 1000)


@pytest.fixture
def hub():
    revisions = {
        f"step{s}": linear_files(s, **tokenizer_files()) for s in reversed(STEPS)
    }
    with StandIn({REPO: {"main": linear_files(99), **revisions}}) as server:
        yield server


@pytest.fixture
def naps(monkeypatch):
    """Waits that were asked for; they are not waited."""
    asked = []
    monkeypatch.setattr(time, "sleep", asked.append)
    return asked


def opened(hub, cache, *args, **options):
    options.setdefault("model", nn.Linear(3, 2))
    return Trajectory.from_hub(
        REPO, *args, cache_dir=cache, endpoint=hub.url, **options
    )


def same(model, other):
    state, expected = model.state_dict(), other.state_dict()
    return state.keys() == expected.keys() and all(
        torch.equal(state[k], expected[k]) for k in state
    )


def test_opening_asks_for_names_only_and_pins_commits(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    assert trajectory.steps.tolist() == list(STEPS)
    assert hub.calls == {"refs": 1}
    assert list(tmp_path.iterdir()) == []
    commits = hub.commits(REPO)
    for checkpoint in trajectory:
        assert checkpoint.revision == checkpoint.label == f"step{checkpoint.step}"
        assert checkpoint.commit == commits[checkpoint.revision]
    assert trajectory.provenance()["revisions"]["16"] == {
        "revision": "step16",
        "commit": commits["step16"],
        "tokens": None,
    }
    json.dumps(trajectory.provenance())


def test_weights_come_when_asked_for_and_once(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    assert same(trajectory[16].model(), linear(16))
    assert same(trajectory.skeleton().load(16), linear(16))
    with trajectory[16].open() as reader:
        assert reader.shape("weight") == (2, 3)
    again = opened(hub, tmp_path)
    assert same(again[16].model(), linear(16))
    assert (hub.calls["get"], hub.calls["head"], hub.calls["refs"]) == (1, 1, 2)
    assert hub.calls["tree"] == 1
    assert all(
        "step16" in line or hub.commits(REPO)["step16"] in line
        for line in hub.lines[1:-1]
    )


def test_digests_never_download_and_those_of_files_are_the_same_before_and_after(
    hub, tmp_path
):
    trajectory = opened(hub, tmp_path)
    with pytest.raises(NotDownloadedError, match="step2 are not downloaded"):
        trajectory[2].digests()
    before, fingerprint = trajectory[2].file_digests(), trajectory[2].fingerprint
    assert (
        list(before) == ["model.safetensors"] and len(before["model.safetensors"]) == 64
    )
    assert hub.calls["get"] == 0
    trajectory[2].model()
    assert (
        trajectory[2].file_digests() == before
        and trajectory[2].fingerprint == fingerprint
    )
    assert sorted(trajectory[2].digests()) == ["bias", "weight"]
    offline = opened(hub, tmp_path, local_files_only=True)
    assert offline[2].file_digests() == before and offline[2].fingerprint == fingerprint


def test_a_branch_that_moves_on_does_not_move_the_trajectory(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    pinned = trajectory[16].commit
    old = hub.repos[REPO]["step16"]
    hub.repos[REPO]["an-old-commit"] = old  # commits stay on the Hub
    hub.repos[REPO]["step16"] = linear_files(77)
    assert same(trajectory[16].model(), linear(16)) and trajectory[16].commit == pinned
    assert same(opened(hub, tmp_path)[16].model(), linear(77))


def test_550_revisions_are_listed_once_whichever_thread_or_process_asks(
    tmp_path, monkeypatch
):
    config = {"config.json": b'{"model_type": "none", "size": 3}'}
    revisions = {f"step{s}": linear_files(s, **config) for s in range(0, 550_000, 1000)}
    with StandIn({REPO: revisions}) as hub:
        trajectory = opened(hub, tmp_path)
        assert len(trajectory) == 550
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: trajectory.fingerprints(), range(4)))
        assert results[0] == results[3] and len(set(results[0].values())) == 550
        assert list(trajectory.audit()) == []
        assert hub.calls == {"refs": 1, "tree": 550}
        assert list(tmp_path.glob("models--*")) == []
        listings._listing.cache_clear()  # as in another process
        again = opened(hub, tmp_path)
        assert again.fingerprints() == results[0]
        assert (hub.calls["refs"], hub.calls["tree"]) == (2, 550)
        # They have one configuration, which is fetched once.
        assert len({json.dumps(c.configuration()) for c in again}) == 1
        assert (hub.calls["head"], hub.calls["get"]) == (1, 1)
        calls = hub.calls.total()
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(
            CheckpointError, match=r"config\.json.*not in the cache|no revision"
        ):
            opened(hub, tmp_path)[0].model()
        assert hub.calls.total() == calls


def test_a_listing_that_was_kept_and_is_damaged_is_asked_for_again(hub, tmp_path):
    expected = opened(hub, tmp_path)[16].file_digests()
    (kept,) = tmp_path.rglob(f"{hub.commits(REPO)['step16']}.json")
    for content in (b"", b"[1]", b'{"model.safetensors": {"size": "x"}}', b"{1"):
        kept.write_bytes(content)
        listings._listing.cache_clear()
        assert opened(hub, tmp_path)[16].file_digests() == expected
    assert hub.calls["tree"] == 5


@pytest.mark.parametrize(
    "forged",
    [
        {"tokenizer.json": {"size": 1, "digest": "../../../secret"}},
        {"../../../../evil.py": {"size": 1, "digest": "a" * 40}},
        {"model.safetensors": {"size": 1, "digest": "ab"}},
        {"model.safetensors": {"size": float("inf"), "digest": "a" * 64}},
    ],
    ids=["digest", "name", "short", "size"],
)
def test_a_listing_that_another_user_of_the_cache_forged_is_asked_for_again(
    hub, tmp_path, forged
):
    (tmp_path / "secret").write_text("secret")
    cache = tmp_path / "cache"
    expected = opened(hub, cache)[16].source.listing()
    (kept,) = cache.rglob(f"{hub.commits(REPO)['step16']}.json")
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **forged}))
    listings._listing.cache_clear()
    again = opened(hub, cache, trust_remote_code=True)[16]
    assert again.source.listing() == expected
    again.model()
    again.source.fetch("tokenizer.json")
    links = [path.resolve() for path in cache.rglob("*") if path.is_symlink()]
    assert links and all(path.is_relative_to(cache) for path in links)


def test_a_digest_that_was_kept_and_is_wrong_is_not_believed_for_ever(hub, tmp_path):
    opened(hub, tmp_path)[16].source.listing()
    (kept,) = tmp_path.rglob(f"{hub.commits(REPO)['step16']}.json")
    wrong = {"model.safetensors": {"size": 1, "digest": "a" * 64}}
    kept.write_text(json.dumps({**json.loads(kept.read_text()), **wrong}))
    listings._listing.cache_clear()
    with pytest.raises(CheckpointError, match=r"arrived damaged: .*; try again"):
        opened(hub, tmp_path)[16].model()
    listings._listing.cache_clear()
    assert same(opened(hub, tmp_path)[16].model(), linear(16))


def test_only_shards_with_tensors_that_are_read_are_fetched(tmp_path):
    revisions = {f"step{s}": two_shards(s, 100 + s) for s in (1, 2)}

    def asked(step):
        commit = hub.commits(REPO)[f"step{step}"]
        got = [line for line in hub.lines if line.startswith("GET") and commit in line]
        return sorted(
            {line.rpartition("/")[2][:11] for line in got if line.endswith("tensors")}
        )

    with StandIn({REPO: revisions}) as hub:
        trajectory = opened(hub, tmp_path)
        with trajectory[1].open() as reader:
            assert reader.names() == ["a", "b"] and asked(1) == []
            torch.manual_seed(1)
            assert torch.equal(reader.get("a"), torch.randn(8, 40))
            assert reader.shape("a") == (8, 40) and reader.rows("a", 1, 3).shape == (
                2,
                40,
            )
            with pytest.raises(CheckpointError, match="has no tensor 'c'"):
                reader.dtype("c")
        assert asked(1) == ["model-00001"] and not trajectory[1].is_downloaded
        with Prefetch(trajectory, max_revisions=1, tensors=["b"]) as prefetch:
            for step in prefetch.steps:
                with prefetch.use(step) as checkpoint, checkpoint.open() as reader:
                    torch.manual_seed(100 + step)
                    assert torch.equal(reader.get("b"), torch.randn(8, 40))
        assert asked(2) == ["model-00002"]
        with trajectory[1].open() as reader:  # the rest comes when it is needed
            assert reader.get("a").shape == reader.get("b").shape
        assert trajectory[1].is_downloaded and asked(1) == [
            "model-00001",
            "model-00002",
        ]


def test_busy_servers_are_asked_again_after_the_pause_that_they_ask_for(
    hub, tmp_path, naps
):
    hub.retry_after = 17
    hub.faults += [
        ("/refs", 429),
        ("/refs", 503),
        ("/tree/", 429),
        ("HEAD", 503),
        ("GET /lab", 429),
    ]
    trajectory = opened(hub, tmp_path)
    assert same(trajectory[16].model(), linear(16))
    assert hub.faults == [] and hub.calls["refused"] == 5
    assert len(naps) >= 4 and all(17 <= nap <= 18 for nap in naps if nap >= 1)


def test_a_server_that_stays_busy_is_a_clear_error(hub, tmp_path, naps):
    hub.faults += [("/refs", 503)] * 10
    with pytest.raises(
        CheckpointError, match=r"could not be downloaded from the Hub: .*503"
    ):
        opened(hub, tmp_path)
    assert len(hub.faults) == 4  # asked six times
    assert naps == sorted(naps)


def test_an_interrupted_download_is_resumed(hub, tmp_path, naps):
    hub.faults += [("GET /lab/tiny/resolve", "cut")]
    assert same(opened(hub, tmp_path)[16].model(), linear(16))
    assert hub.calls["get"] == 2


def test_a_download_that_stays_cut_is_a_clear_error_and_leaves_nothing(
    hub, tmp_path, naps
):
    hub.faults += [
        ("GET /lab/tiny/resolve", "cut"),
        *[("GET /lab/tiny/resolve", 503)] * 50,
    ]
    trajectory = opened(hub, tmp_path)
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors of lab/tiny at step16"
    ) as caught:
        trajectory[16].model()
    assert "\n" not in str(caught.value)
    assert not [p for p in (tmp_path / "models--lab--tiny").rglob("*") if p.is_file()]
    hub.faults.clear()
    assert same(trajectory[16].model(), linear(16))


def test_content_that_is_not_what_was_listed_is_refused_and_not_kept(
    hub, tmp_path, monkeypatch
):
    trajectory = opened(hub, tmp_path)
    trajectory[16].file_digests()
    files = dict(hub.repos[REPO]["step16"])
    damaged = bytearray(files["model.safetensors"])
    damaged[-1] ^= 1
    commit = commit_of(files)
    monkeypatch.setattr(
        hub,
        "files_at",
        lambda *_: (commit, {**files, "model.safetensors": bytes(damaged)}),
    )
    with pytest.raises(CheckpointError, match="arrived damaged"):
        trajectory[16].model()
    monkeypatch.undo()
    assert same(trajectory[16].model(), linear(16))


def test_repositories_with_one_checkpoint_each_are_a_trajectory(tmp_path):
    steps = (0, 20, 40, 100, 2000)
    repos = {f"lab/bert-seed_0-step_{s}k": {"main": linear_files(s)} for s in steps}
    with StandIn({**repos, "lab/empty-step_1k": {}}) as hub:

        def open_all(names):
            return Trajectory.from_hub(
                names, cache_dir=tmp_path, endpoint=hub.url, model=nn.Linear(3, 2)
            )

        trajectory = open_all(sorted(repos))
        assert trajectory.steps.tolist() == [s * 1000 for s in steps]
        assert trajectory.title == "lab/bert-seed_0-step"
        assert same(trajectory[20_000].model(), linear(20))
        assert hub.calls["refs"] == len(steps)
        with Prefetch(trajectory) as prefetch:
            for step in prefetch.steps:
                with prefetch.use(step) as checkpoint:
                    assert same(checkpoint.model(), linear(step // 1000))
        # The one that was there before.
        assert len(list(tmp_path.glob("models--*"))) == 1
        with pytest.raises(CheckpointError, match="lab/empty-step_1k is empty"):
            open_all([*repos, "lab/empty-step_1k"])
        for wrong in ([], 3, ["lab/bert-seed_0-step_0k", 3]):
            with pytest.raises(ArgumentError, match="repo must"):
                open_all(wrong)


def test_unknown_revisions_repositories_and_names(hub, tmp_path):
    with pytest.raises(UnknownRevisionError, match=r"nearest are step1, step2, step16"):
        opened(hub, tmp_path, "step30")
    with pytest.raises(CheckpointError, match="no such repository"):
        Trajectory.from_hub("lab/other", cache_dir=tmp_path, endpoint=hub.url)
    with pytest.raises(ArgumentError, match="owner/name"):
        Trajectory.from_hub("not a name", cache_dir=tmp_path, endpoint=hub.url)
    hub.repos["lab/empty"] = {}
    with pytest.raises(CheckpointError, match="lab/empty is empty"):
        Trajectory.from_hub("lab/empty", cache_dir=tmp_path, endpoint=hub.url)


def test_a_step_missing_from_a_list_is_a_labelled_gap_or_an_error(hub, tmp_path):
    trajectory = opened(hub, tmp_path, [0, 16, 17])
    assert trajectory.steps.tolist() == [0, 16] and list(trajectory.gaps) == [17]
    assert trajectory.select(count=2).gaps == trajectory.gaps
    findings = trajectory.audit()
    assert [(f.kind, f.certainty, f.steps) for f in findings] == [
        ("missing", "certain", (17,))
    ]
    assert "nearest are step1, step2, step16" in findings[0].message
    with pytest.raises(UnknownRevisionError):
        opened(hub, tmp_path, [0, 16, 17], strict=True)


def test_a_revision_without_weights_or_with_a_shard_missing_is_named(hub, tmp_path):
    hub.repos[REPO]["step3"] = {"README.md": b"soon"}
    hub.repos[REPO]["step4"] = {"model-00001-of-00002.safetensors": b"x"}
    trajectory = opened(hub, tmp_path)
    with pytest.raises(CheckpointError, match=r"step3 .* holds no weights"):
        trajectory[3].file_digests()
    with pytest.raises(CheckpointError, match=r"step4 .* lacks 1 of 2 shards"):
        trajectory[4].model()
    findings = trajectory.audit()
    assert [(f.kind, f.steps) for f in findings] == [
        ("unreadable", (3,)),
        ("unreadable", (4,)),
    ]


def test_safetensors_shards_and_pickles_of_a_transformers_model_load(tmp_path):
    models = {step: neox(step) for step in (0, 10, 20)}
    revisions = {
        "step0": model_files(models[0], tmp_path / "0"),
        "step10": model_files(models[10], tmp_path / "10", shard="20KB"),
        "step20": {
            "config.json": model_files(models[20], tmp_path / "20")["config.json"],
            **bin_files(models[20].state_dict()),
        },
    }
    assert (
        len([name for name in revisions["step10"] if name.endswith(".safetensors")]) > 1
    )
    with StandIn({REPO: revisions}) as hub:
        trajectory = opened(hub, tmp_path / "cache", model=None)
        for step, model in models.items():
            assert same(trajectory[step].model(), model)
        skeleton = trajectory.skeleton()
        for step in (20, 0, 10):
            assert same(skeleton.load(step), models[step])


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_a_malicious_pickle_from_the_hub_does_nothing(tmp_path):
    target = tmp_path / "it-ran"
    files = {"step1": bin_files({"weight": Malicious(target)})}
    with StandIn({REPO: files}) as hub:
        trajectory = opened(hub, tmp_path / "cache")
        with pytest.raises(
            CheckpointError, match=r"no tensors by name|cannot be read as tensors"
        ):
            trajectory[1].model()
        trajectory.audit()
    assert not target.exists()


CODE = """
from transformers import PreTrainedModel, PretrainedConfig
import torch, pathlib

pathlib.Path({target!r}).touch()

class TinyConfig(PretrainedConfig):
    model_type = "tiny-of-the-lab"

class TinyModel(PreTrainedModel):
    config_class = TinyConfig
    def __init__(self, config):
        super().__init__(config)
        self.linear = torch.nn.Linear(3, 2)
        self.post_init()
"""


def test_code_of_a_repository_is_not_even_fetched_unless_asked_for(
    tmp_path, monkeypatch
):
    target, cache = tmp_path / "it-ran", tmp_path / "cache"
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "m")
    )
    state = {f"linear.{k}": v for k, v in linear(5).state_dict().items()}
    config = {
        "architectures": ["TinyModel"],
        "model_type": "tiny-of-the-lab",
        "auto_map": {"AutoConfig": "tiny.TinyConfig", "AutoModel": "tiny.TinyModel"},
    }
    from safetensors.torch import save

    files = {
        "model.safetensors": save(state),
        "config.json": json.dumps(config).encode(),
        "tiny.py": CODE.format(target=str(target)).encode(),
    }
    with StandIn({REPO: {"step5": files}}) as hub:
        with pytest.raises(
            CheckpointError,
            match=rf"^{REPO} needs code .*AutoModel.from_pretrained\(.{REPO}",
        ):
            opened(hub, cache, model=None)[5].model()
        assert not target.exists() and not list(cache.rglob("tiny.py"))
        trusted = opened(hub, cache, model=None, trust_remote_code=True)
        assert same(trusted[5].model().linear, linear(5))
        assert target.exists()


def test_the_tokenizer_is_that_of_the_revisions_and_main_is_never_asked(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    assert trajectory.tokenizer()("a b").input_ids == [0, 1]
    main = hub.commits(REPO)["main"]
    assert not [line for line in hub.lines if "/main/" in line or main in line]
    hub.repos[REPO]["step5000"] = linear_files(5000, **tokenizer_files(c=3))
    changed = opened(hub, tmp_path)
    with pytest.raises(
        CheckpointError, match=r"tokenizer changes at step 5000 \(tokenizer\.json\)"
    ):
        changed.tokenizer()
    assert changed.select(stop=1000).tokenizer() is not None


def test_offline_what_the_cache_holds_is_what_exists(tmp_path, monkeypatch):
    whole = {f"step{s}": linear_files(s, **tokenizer_files()) for s in STEPS}
    build_cache(tmp_path, REPO, whole | {"step7": {"config.json": b"{}"}})
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    trajectory = Trajectory.from_hub(REPO, cache_dir=tmp_path, model=nn.Linear(3, 2))
    assert trajectory.steps.tolist() == list(STEPS)  # step 7 has no weights there
    for step in STEPS:
        assert same(trajectory[step].model(), linear(step))
    assert trajectory[2].commit == commit_of(whole["step2"])
    assert trajectory.tokenizer()("b").input_ids == [1]
    assert list(trajectory.audit()) == []
    with pytest.raises(CheckpointError, match="HF_HUB_OFFLINE"):
        Trajectory.from_hub("lab/other", cache_dir=tmp_path)


def test_what_was_fetched_online_is_found_offline_by_name(hub, tmp_path):
    opened(hub, tmp_path)[16].model()
    offline = opened(hub, tmp_path, local_files_only=True)
    calls = hub.calls.total()
    assert offline.steps.tolist() == [16] and same(offline[16].model(), linear(16))
    assert hub.calls.total() == calls


def test_in_a_cache_without_links_digests_are_those_of_the_listing(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    trajectory[16].model()
    weights = trajectory[16].path / "model.safetensors"
    content = weights.read_bytes()
    weights.unlink()
    weights.write_bytes(content)
    offline = opened(hub, tmp_path, local_files_only=True)
    assert offline[16].file_digests() == trajectory[16].file_digests()


def test_a_trajectory_survives_pickling_and_keeps_its_token_out_of_sight(hub, tmp_path):
    trajectory = opened(hub, tmp_path, token="hf_secret")
    assert "hf_secret" not in repr(list(trajectory)) + repr(trajectory.provenance())
    copy = pickle.loads(pickle.dumps(trajectory))
    assert same(copy[1].model(), linear(1))


def test_threads_that_open_one_revision_fetch_it_once(hub, tmp_path):
    trajectory = opened(hub, tmp_path)
    barrier, expected = threading.Barrier(4), linear(16)

    def load(_):
        barrier.wait()
        return same(trajectory[16].model(), expected)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(load, range(4)))
    assert hub.calls["get"] == 1


@pytest.mark.parametrize(
    "name", ["../../../evil", "{0}/evil", "step1/../../../../evil"]
)
def test_a_revision_name_never_leads_out_of_the_cache(tmp_path, name):
    name = name.format(tmp_path)
    source = HubRevision("o/r", name, "a" * 40, tmp_path / "cache", offline=True)
    source._write_ref()
    assert not list(tmp_path.rglob("evil"))
    with (
        StandIn({REPO: {"step1": linear_files(1), name: linear_files(2)}}) as hub,
        pytest.raises(CheckpointError, match="a branch has no such name"),
    ):
        opened(hub, tmp_path / "cache")


def test_a_commit_that_is_a_path_is_refused(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "commits", lambda repo: {"step1": f"{tmp_path}/evil"})
    with pytest.raises(CheckpointError, match="a commit no such number"):
        opened(hub, tmp_path / "cache")


@pytest.mark.parametrize("name", ["{0}/evil.py", "../../../../evil.py"])
def test_a_listed_file_never_leads_out_of_the_cache(tmp_path, name):
    files = linear_files(1, **{name.format(tmp_path): b"", "config.json": b"{}"})
    with StandIn({REPO: {"step1": files}}) as hub:
        trajectory = opened(hub, tmp_path / "cache", trust_remote_code=True)
        with pytest.raises(CheckpointError, match="lists a file outside its folder"):
            trajectory[1].model()
    assert not list(tmp_path.rglob("evil.py"))


@pytest.mark.parametrize("header", ["ETag", "X-Linked-Etag"])
@pytest.mark.parametrize(
    "tag", ["{0}/evil", "../../../evil", 'W/"../../../evil"', "..", "a\\b"]
)
def test_an_entity_tag_never_leads_out_of_the_cache(tmp_path, monkeypatch, header, tag):
    tag = tag.format(tmp_path)
    mine = tmp_path / "evil"
    mine.write_text("mine")
    cache = tmp_path / "a" / "cache"
    with StandIn({REPO: {"step1": linear_files(1)}}) as hub:
        monkeypatch.setattr(hub, "headers", {header: tag})
        with pytest.raises(CheckpointError, match="a path as the tag of a file"):
            opened(hub, cache)[1].model()
    outside = [
        p for p in tmp_path.rglob("*") if p.is_file() and not p.is_relative_to(cache)
    ]
    assert outside == [mine] and mine.read_text() == "mine"
    assert not [p for p in cache.rglob("*") if p.is_symlink()]


def test_a_damaged_file_is_deleted_and_nothing_that_it_only_links_to(tmp_path):
    source = HubRevision("o/r", "step1", "a" * 40, tmp_path / "cache")
    mine = tmp_path / "mine"
    mine.write_text("mine")
    source.path.mkdir(parents=True)
    (source.path / "model.safetensors").symlink_to(mine)
    with pytest.raises(CheckpointError, match="arrived damaged"):
        source._check_content(
            source.path / "model.safetensors", listings.HubFile(4, "0" * 64)
        )
    assert mine.read_text() == "mine" and not list(source.path.iterdir())
