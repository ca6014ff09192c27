"""Figures as files: `write` writes all of them, the `overview` and the `concepts` among them."""
