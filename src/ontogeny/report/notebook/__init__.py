"""A result's figures as objects for notebooks and scripts: drawn, as data, and as files.

The pictures are those that `ontogeny.report.write_figures` writes for papers, and the data are the
same tables.
"""
