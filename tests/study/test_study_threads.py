"""How many threads libraries use while tasks of a study run beside one another in one process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn.cluster  # noqa: F401  # brings an OpenMP of its own
import torch
import xarray as xr
from threadpoolctl import threadpool_info, threadpool_limits

import ontogeny as og
from helpers.study_examples import LAYERS, developing, tiny_inputs
from ontogeny.study.cells.environment import _briefly, pinned


def counts():
    return [info["num_threads"] for info in threadpool_info()]


@pytest.fixture
def two_threads():
    """Let libraries have two threads, whatever the environment says."""
    of_torch = torch.get_num_threads()
    limits = _briefly(lambda: threadpool_limits(2, user_api="blas"))
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(of_torch)
    _briefly(limits.restore_original_limits)


def test_every_thread_is_pinned_and_all_is_restored(two_threads):
    before, of_torch = counts(), torch.get_num_threads()
    assert of_torch == 2 and before.count(2) >= 2
    both, found = threading.Barrier(2, timeout=600), []

    def hold():
        with pinned(1):
            both.wait()
            found.append((counts(), torch.get_num_threads()))
            both.wait()

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [([1] * len(before), 1)] * 2
    assert (counts(), torch.get_num_threads()) == (before, of_torch)


def _study(**options):
    chosen = [og.observables.Loss(), og.observables.ActivationDecay(LAYERS)]
    run = og.Trajectory.from_models(developing((0, 1)))
    return og.Study(run, tiny_inputs(), chosen, device="cpu", noise=0, **options)


def _numbers(result):
    data = [result[node].to_dataset() for node in ("loss", "activation-decay")]
    return {
        name: v.values
        for each in data
        for name, v in each.items()
        if v.dtype.kind == "f"
    }


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """A folder with numbers of the usual settings, and these numbers."""
    folder = tmp_path_factory.mktemp("usual")
    return folder, _numbers(_study().run(folder, progress=False))


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"threads": 2}])
def test_batch_size_and_threads_change_nothing_beyond_rounding(
    usual, tmp_path, options
):
    folder, expected = usual
    other = _study(**options)
    found = _numbers(other.run(tmp_path / "s", progress=False))
    assert found.keys() == expected.keys() and len(found) > 3
    for name, values in expected.items():
        np.testing.assert_allclose(
            found[name], values, rtol=1e-5, atol=1e-6, err_msg=name
        )
    # Cells of other settings are not mixed with its own.
    assert other.plan(folder).to_do == 4
    assert _study().plan(folder).to_do == 0


@pytest.mark.slow
def test_models_that_share_a_configuration_are_read_in_threads_as_one_after_another(
    tmp_path,
):
    from transformers import LlamaConfig, LlamaForCausalLM

    shared = LlamaConfig(
        vocab_size=40,
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=32,
        max_position_embeddings=64,
    )

    def build():
        return LlamaForCausalLM(shared)

    run = tmp_path / "run"
    run.mkdir()
    for step in range(6):
        torch.manual_seed(step)
        torch.save(build().state_dict(), run / f"step{step}.pt")
    trees = []
    for workers in (0, 4):
        trajectory = og.Trajectory.from_folder(run, model=build)
        observables = [og.observables.Loss(), og.observables.AttentionEntropy()]
        study = og.Study(trajectory, tiny_inputs(), observables, batch_size=2)
        with ThreadPoolExecutor(max(workers, 1)) as threads:
            trees.append(
                study.run(tmp_path / f"{workers}", threads if workers else None).tree
            )
    for node, data in trees[0].children.items():
        xr.testing.assert_equal(data.to_dataset(), trees[1][node].to_dataset())
    assert shared._attn_implementation == "sdpa"
