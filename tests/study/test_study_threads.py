"""How many threads libraries use while tasks of a study run beside one another in one process."""

import threading

import pytest
import sklearn.cluster  # noqa: F401  # brings an OpenMP of its own
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from ontogeny.study.threads import _briefly, pinned


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
