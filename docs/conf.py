"""Sphinx: the guides and the reference as one site (`make docs`)."""

import os
import sys
from pathlib import Path

from ontogeny import __version__

# A library below the notebooks would ask for widgets, which a page does not have.
os.environ["PYTHONWARNINGS"] = "ignore:IProgress"

sys.path.insert(0, str(Path(__file__).parents[1] / "papers/docs/evidence"))

project = "ontogeny"
author = "The ontogeny developers"
project_copyright = author
release = __version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "claims_table",
]
html_theme = "furo"
html_title = "ontogeny"
html_static_path = ["_static"]
# The source is the root of the repository: links between the guides of the library and those of
# the papers are then right on the site and on the forge.
root_doc = "docs/index"
include_patterns = ["docs/**", "papers/docs/**", "benchmarks/README.md"]
exclude_patterns = ["docs/_build", "docs/_templates", "**/jupyter_execute"]
templates_path = ["docs/_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False  # what a room exports is its reference
autodoc_typehints = "none"  # signatures of arrays and options would fill the lines
numpydoc_show_class_members = False
default_role = "py:obj"  # names in single backticks link where they can
myst_heading_anchors = 3
nb_execution_mode = "force"  # the notebooks are stored without outputs
nb_execution_in_temp = True
nb_execution_timeout = (
    600  # seconds for a cell, on a machine that is busy with something else
)
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
suppress_warnings = [
    "myst.xref_missing"
]  # links to files outside the site, as on the forge


def setup(app):
    """Leave out what Python writes by itself about the fields of named tuples."""
    app.connect("autodoc-skip-member", _is_field_alias)


def _is_field_alias(app, kind, name, member, skip, options):
    return skip or str(getattr(member, "__doc__", "")).startswith(
        "Alias for field number"
    )
