"""Every sentence that a result gives: from rows and what stands beside them to plain English.

A row is read once, as `rows.Row`; page, notebook, terminal, files and comparisons say the same of
it. Nothing here knows what measured a result, what draws it, or a model.
"""
