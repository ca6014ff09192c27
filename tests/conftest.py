"""Settings of every test: what Hypothesis may do on a busy machine, and the same draws."""

import gc
import os
import shutil
import tempfile
from multiprocessing.util import Finalize
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from ontogeny import activity
from ontogeny.capture.activation import ActivationCollector

# It writes files of TensorFlow, which the tests do without.
collect_ignore = [
    "trajectory/mlx_adapter/write.py",
    "trajectory/tensor_bundle/write.py",
]

# A stand-in for the Hub is slow on a busy machine, and a call that is given up is made again.
os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "300")
os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "300")

# Whether a command takes so long that it says what it does is a matter of the machine.
activity.FIRST = float("inf")

# Tests end processes, not machines: what was written is there without waiting for the disk, which
# every cell and every checkpoint would do. Tests of what is written put their own in its place.
os.fsync = lambda _: None

# A study writes a thousand small files and takes them away again, which can take longer on a disk
# than what is tested. A whole run writes 2.5 GB. TMPDIR names another place, and keeps the files.
_MEMORY, _ROOM = Path("/dev/shm"), 5 * 2**30


def _write_into_memory():
    if "TMPDIR" in os.environ or not _MEMORY.is_dir():
        return
    if shutil.disk_usage(_MEMORY).free < _ROOM:
        return
    folder = tempfile.mkdtemp(prefix="tests-of-ontogeny-", dir=_MEMORY)
    Path(folder).chmod(0o755)  # as /tmp is open to other users, of whom tests have some
    os.environ["TMPDIR"], tempfile.tempdir = folder, None
    # After the sockets of multiprocessing, which are in it, and in no fork.
    Finalize(None, shutil.rmtree, [folder], {"ignore_errors": True}, exitpriority=-200)


_write_into_memory()

# Deadlines and the check for slow examples measure the machine, not the code. Everything else stays
# as Hypothesis has it: where the variable CI is set, it draws the same examples each time.
settings.register_profile(
    "any-machine",
    settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any-machine")


# What imports and collected tests leave lives to the end. Full collections of garbage went through
# all of it again: a quarter of the time in which tests are collected, a twentieth of the others'.
gc.disable()


def pytest_collection_finish():
    """Let the collector look at what tests make, and not at what was there before them."""
    gc.collect()
    gc.freeze()
    # One study makes far more than the usual 700 objects.
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def _same_draws_in_any_order():
    """Models that a test builds without a seed are the same whichever tests ran before it."""
    # Those of devices would each note a stack of calls.
    torch.default_generator.manual_seed(0)


@pytest.fixture(autouse=True)
def _noise_on_activations(monkeypatch):
    """With ONTOGENY_TEST_NOISE=1e-6 every captured activation has that much relative noise."""
    size = float(os.environ.get("ONTOGENY_TEST_NOISE", 0))
    if not size:
        return
    result = ActivationCollector.result

    def noisy(self):
        generator = torch.Generator().manual_seed(1)
        return {
            path: A * (1 + size * torch.randn(A.shape, generator=generator).to(A))
            for path, A in result(self).items()
        }

    monkeypatch.setattr(ActivationCollector, "result", noisy)
