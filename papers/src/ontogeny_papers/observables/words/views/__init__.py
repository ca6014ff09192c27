"""What a corpus or a model holds of semantics, as nodes that the report draws.

Each function returns a dataset with its figures attached; :func:`semantics_page` puts them into one
tree, which :func:`ontogeny.report.write` turns into a page.
"""
