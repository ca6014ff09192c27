"""Importing the package is light, and every public name is there."""

import subprocess
import sys

import pytest

import ontogeny as og

HEAVY = (
    "torch",
    "transformers",
    "matplotlib",
    "sklearn",
    "xarray",
    "dask",
    "distributed",
)


def test_import_loads_nothing_heavy():
    code = f"import sys, ontogeny; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_help_of_the_command_loads_nothing_heavy():
    code = (
        "import sys\nfrom ontogeny.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip().endswith("[]")


@pytest.mark.slow
def test_studies_load_neither_pages_nor_pictures():
    code = (
        "import sys, ontogeny.study as study\n"
        "drawn = ('jinja2', 'matplotlib', 'ontogeny.report.page.html', 'ontogeny.report.kinds')\n"
        "print([m for m in drawn if m in sys.modules])\n"
        "import ontogeny.report as report\n"
        "print([getattr(report, name).__name__ for name in report.__all__])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded, names = done.stdout.splitlines()
    assert loaded == "[]"
    assert names == "['chart_svg', 'write', 'write_figures']"


@pytest.mark.parametrize("name", og.__all__)
def test_every_public_name_is_there(name):
    assert getattr(og, name) is not None
    assert name in dir(og)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="Trajectorie"):
        og.Trajectorie  # noqa: B018
