"""Processes of their own that begin as forks of one that has imported the libraries below us.

torch, transformers and scikit-learn take about five seconds to import. Here one process, which
knows nothing of the tests or of ontogeny, imports them once; every further one is forked from it in
milliseconds, with a path, an environment, a folder and a main module of its own. What a test says
about imports, and what reads the environment while it is imported, needs a new interpreter.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import types
from functools import cache
from multiprocessing.forkserver import ensure_running
from pathlib import Path
from unittest import mock

from .paths import environment

_LIBRARIES = [
    "torch",
    "transformers.modeling_utils",
    "transformers.models.eurobert.modeling_eurobert",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.decomposition",
    "dask.array",
    "xarray",
    "zarr",
    "jinja2",
    "typer",
]
_OF_THE_HUB = (
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
)


@cache
def warm_context():
    """Return a context of `multiprocessing` whose processes have imported the libraries."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_LIBRARIES)
    # huggingface_hub reads its environment once; a test may have set it for itself.
    changed = [name for name in os.environ if name.startswith(_OF_THE_HUB)]
    with mock.patch.dict(os.environ):
        for name in changed:
            del os.environ[name]
        ensure_running()
    return context


def begin(arguments, *, env=None, cwd=None, out=os.devnull, err=os.devnull):
    """Begin what ``python arguments`` does: ``-c CODE``, ``-m MODULE`` or a script, and the rest.

    Returns a `multiprocessing.Process`: its `exitcode` is negative where a signal ended it. `out`
    and `err` are files that it writes to.
    """
    arguments = [str(argument) for argument in arguments]
    where = (env or environment(), str(cwd or Path.cwd()), str(out), str(err))
    process = warm_context().Process(target=_become, args=(arguments, *where))
    process.start()
    return process


def run(arguments, *, env=None, cwd=None):
    """Run what ``python arguments`` does; return a `subprocess.CompletedProcess` with its text."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        process = begin(arguments, env=env, cwd=cwd, out=out, err=err)
        process.join()
        return subprocess.CompletedProcess(
            arguments, process.exitcode, out.read_text(), err.read_text()
        )


def _become(arguments, env, cwd, out, err):
    for number, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    # Whatever runs the tests in the background may have them ignore what Ctrl-C sends.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    what, rest = arguments[0], arguments[1:]
    sys.path[:0] = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    if what == "-c":
        sys.argv = ["-c", *rest[1:]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    elif what == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(what, run_name="__main__")
