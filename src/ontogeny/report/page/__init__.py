"""The page: templates, styles, scripts and data in one HTML file.

`write` is what users call, `html` puts the page together, and `payload` is the data in it.
"""
