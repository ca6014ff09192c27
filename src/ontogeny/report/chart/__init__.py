"""The developmental chart: its rows in groups, laid out as marks, and drawn as SVG.

`draw` puts the parts together; `rows` and `marks` draw the two views of a row, on a `canvas`.
"""
