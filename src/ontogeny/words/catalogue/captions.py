"""What is drawn, what is left out and what failed, under figures and beside them: texts alone.

Marks in doubled braces are filled by the page, when a run is chosen.
"""

from __future__ import annotations

CAPTIONS = {
    # of a whole, what is shown
    "measures shown": "{some} of {all} shown, chosen evenly. The table below holds all.",
    "cells shown": "{some} of {all} shown as cells.",
    "thinned": "Thinned to hold the page small: {what}.",
    "along": "{some} of {all} along {axis}",
    "panels shown": "{some} of {all} {checkpoint}s shown, evenly chosen.",
    "points shown": "{some} of {all} points shown, drawn at random.",
    "points of panels": "{some} of {all} points in each panel shown, drawn at random.",
    "rows shown": "The first {some} of {all} rows; the files hold all.",
    "clouds shown": "The first {some} of {all} clouds shown.",
    "texts shown": "The first {some} of {all} are shown.",
    "tokens shown": "The first {some} of {all} of each text are shown.",
    "undrawn": "Not drawn in {where}, as the picture's font lacks their script: {words}.",
    "other scripts": "{count} more in other scripts, listed with the caption",
    "half-way": "{rows}; {some}half-way at {steps}",
    "some": "{count} of them ",
    # marks of the chart, and its pictures
    "open": "not shown to exceed noise or chance",
    "open, controlled": "not shown to exceed noise, chance or controls",
    "half-changes": "A dot stands where half of the way from the first to the last value was "
    "done; the bar is its 95 % interval. Open: not shown to have moved by more than noise{} give.",
    "guesses": "Dashed: what guesses cost.",
    "guesses and best": "Dashed: what guesses cost, and the best possible loss.",
    "sheet ends": "{sheet} From left to right: {clock} {first} to {last}, on a logarithmic scale.",
    # concepts
    "few checkpoints": "lives take at least 3 checkpoints, and there are {count}",
    "fitted": "fitted to {step} alone; other {checkpoint}s have concepts of their own",
    "in menu": "In the menu: the {some} sharpest concepts of {all}. ",
    "names": "{menu}{count} got a name here, and {controls} in {number}, which have concepts of "
    "their own.",
    # what failed
    "others failed": "{count} failed in part. ",
    "unsummarised": "{some} of {all} could not be summarised",
    "reference": "The reference is {then}, the {end} {checkpoint} when the study was begun; the "
    "{end} is {now} now. ontogeny run --rereference moves it.",
    "in control run": "{name}, in control run {run}",
    # a page while its run goes on
    "stopped": "{at} Watching was stopped there; ontogeny run makes the whole study. ",
    "refreshes": "{at} It refreshes itself every {seconds} s. ",
    # shades of tokens
    "of text": "Mean of this text {{}} {units}",
    "surprised": "surprised ({top} {units} or more)",
    "far": "far ({top} nats or more)",
    "to few": "to few ({bottom} nats or less)",
    "to many": "to many ({top} nats or more)",
    "likelier": "likelier than by {guess}, from nats",
    "for good": "for good from {clock}",
    "written": "What it writes",
    "written at": "What it writes at {clock} {step}",
    "dim": "dim: not by the end; underlined: its first answer at the end",
    "dim, struck": "dim: not by the end; struck: by the base, not at the end; underlined: its "
    "first answer at the end",
    # several runs in one figure
    "dark": "Dark line: {run}. {grey}",
    "dark, nulls": "Dark line: {run}. {grey} Nulls are those of {run}.",
    "dark, nulls and shade": "Dark line: {run}. {grey} Nulls and shade are those of {run}.",
    "dark, shade": "Dark line: {run}. {grey} The shade is that of {run}.",
    "same axes": "The run and its control runs on the same axes. {steps}",
    "minus others": "Line: {run} minus the mean of the other {count} runs at the same {step}. "
    "Grey band: ± SD of the others (n − 1). A {step} that a run lacks is a gap.",
    "minus other": "Line: {run} minus {other} at the same {step}. {band}",
    "minus control": "{what}: the run minus its control run.",
    "minus controls": "{what}: the run minus the mean of its {count} control runs.",
    "left out": "{count} of a kind that ends trained is left out.",
    "band": "Grey band: where 95 % of further control runs would lie, at each {checkpoint} by "
    "itself.",
    "controls read": "Control runs were read at {some} of {all} {checkpoint}s.",
}
