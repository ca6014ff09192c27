"""Sphinx: the guides and the reference as one site (`make docs`)."""

from ontogeny import __version__

project = "ontogeny"
author = "The ontogeny developers"
release = __version__
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
html_theme = "furo"
html_title = "ontogeny"
exclude_patterns = ["_build"]
templates_path = ["_templates"]
autosummary_generate = True
autosummary_ignore_module_all = False  # what a room exports is its reference
autodoc_typehints = "none"  # signatures of arrays and options would fill the lines
numpydoc_show_class_members = False
default_role = "py:obj"  # names in single backticks link where they can
myst_heading_anchors = 3
suppress_warnings = ["myst.xref_missing"]  # links to files outside the site, as on the forge


def setup(app):
    """Leave out what Python writes by itself about the fields of named tuples."""
    app.connect("autodoc-skip-member", _is_field_alias)


def _is_field_alias(app, kind, name, member, skip, options):
    return skip or str(getattr(member, "__doc__", "")).startswith("Alias for field number")
