"""Texts in which a reader sees what is measured: tokens in the run's colours, and words left out.

`example` tints the tokens of texts by `measures` and `codes`; `cloze` shows what the run puts into
gaps, `dated` since when it predicts each token, and `written` what it writes.
"""
