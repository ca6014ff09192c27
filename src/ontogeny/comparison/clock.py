"""Along what runs are compared: their steps, the tokens that they have seen, or their loss.

A clock changes the labels of ``step``, never a value; only the loss needs values between two
checkpoints, and there they are on the straight line between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from ..errors import ArgumentError, check_choice
from ..words.formats import fine_step, joined, three_digits
from ..words.voice import OF_STEPS, Voice
from .sources import Run

CLOCKS = ("step", "tokens", "loss")


@dataclass(frozen=True)
class Clock:
    """Runs aligned by their steps: the steps stay as they are.

    ``dimension`` is that of aligned curves. A sentence writes places by ``number``, in the first of
    the ``units`` that the largest of them reaches. ``voice`` says what the runs themselves count.
    """

    dimension = "step"
    units: ClassVar[Mapping[float, str]] = {1.0: ""}
    voice: Voice = field(default=OF_STEPS, kw_only=True)

    @property
    def axis(self) -> Voice:
        """What a place on the axis is called."""
        return self.voice

    @property
    def words(self) -> str:
        """The title of the axis."""
        return self.axis.clock

    def placed(self, places: str, unit: str) -> str:
        """Return places in words, as they are written in a unit."""
        return f"{self.voice.unit} {places}"

    def number(self, value: float) -> str:
        """Return a place without its unit."""
        return fine_step(value)

    def say(
        self,
        values: Sequence[float],
        last: str = " and ",
        intervals: Sequence[tuple[float, float]] = (),
    ) -> str:
        """Return places as a sentence names them.

        Examples
        --------
        >>> Clock().say([51, 60, 58], intervals=[(44, 58)])
        'step 51 (44–58), 60 and 58'
        >>> TokenClock({}).say([2e6, 3e6], " to ")
        '2 to 3 million tokens'
        """
        unit = next((unit for unit in self.units if max(values) >= unit), 1.0)
        written = [self.number(value / unit) for value in values]
        for i, ends in enumerate(intervals):
            if np.isfinite(ends).all():
                low, high = (self.number(end / unit) for end in ends)
                written[i] += f" ({low}–{high})"
        return self.placed(joined(written, last), self.units[unit])

    def place(self, node: xr.Dataset, run: Run) -> xr.Dataset:
        """Return a node of a run along this clock."""
        return node

    def at(self, steps: np.ndarray, run: Run) -> np.ndarray:
        """Return where steps of a run lie; NaN stays."""
        return steps


@dataclass(frozen=True)
class TokenClock(Clock):
    """Runs aligned by the tokens that they have seen: ``step`` counts tokens."""

    units = {
        1e12: "trillion tokens",
        1e9: "billion tokens",
        1e6: "million tokens",
        1.0: "tokens",
    }
    tokens: Mapping[str, np.ndarray]

    @property
    def axis(self) -> Voice:
        """What a place on the axis is called."""
        return replace(self.voice, clock="training tokens")

    def placed(self, places: str, unit: str) -> str:
        """Return places in words, as they are written in a unit."""
        return f"{places} {unit}"

    def number(self, value: float) -> str:
        """Return a place without its unit."""
        return three_digits(value)

    def place(self, node: xr.Dataset, run: Run) -> xr.Dataset:
        """Return a node with tokens as labels of its steps."""
        for dim in [str(d) for d in node.dims if str(d).rstrip("_") == "step"]:
            seen = np.round(self.at(node[dim].values.astype(float), run)).astype(
                np.int64
            )
            node = node.assign_coords({dim: (dim, seen, node[dim].attrs)})
        return node

    def at(self, steps: np.ndarray, run: Run) -> np.ndarray:
        """Return the tokens seen at steps; between checkpoints on the line between them."""
        return np.interp(
            steps, run.steps, self.tokens[run.name], left=np.nan, right=np.nan
        )


@dataclass(frozen=True)
class LossClock(Clock):
    """Runs aligned by their own loss: each curve at the first time that the loss fell to a level.

    Parameters
    ----------
    levels
        (n,) losses from the highest to the lowest that every run passes.
    steps, losses
        By the name of the run: its steps with a known loss (T,), and that loss (T,).
    node
        The node that holds the loss; it keeps its steps.
    """

    dimension = "loss_level"
    number = staticmethod("{:.3g}".format)
    levels: np.ndarray
    steps: Mapping[str, np.ndarray]
    losses: Mapping[str, np.ndarray]
    node: str

    @property
    def words(self) -> str:
        """The title of the axis."""
        return "loss level"

    def placed(self, places: str, unit: str) -> str:
        """Return places in words, as they are written in a unit."""
        return f"loss {places}"

    def place(self, node: xr.Dataset, run: Run) -> xr.Dataset:
        """Return a node with its curves over ``loss_level``; what else has steps is left out."""
        if "step" not in node.dims:
            return node.drop_vars(
                [v for v in node.variables if "step_" in node[v].dims]
            )
        data = node.reindex(step=self.steps[run.name])
        places = first_crossings(self.losses[run.name], self.levels)
        before = np.minimum(np.floor(places).astype(int), len(data.step) - 1)
        after = np.minimum(before + 1, len(data.step) - 1)
        share = xr.DataArray(places - before, dims=self.dimension)
        aligned: dict[Any, xr.DataArray] = {}
        for name, values in data.data_vars.items():
            if "step_" in values.dims:
                continue
            if "step" in values.dims and values.dtype.kind in "fiu":
                one, two = (
                    values.isel(step=xr.DataArray(i, dims=self.dimension)).drop_vars(
                        "step"
                    )
                    for i in (before, after)
                )
                # Exactly at a checkpoint its neighbour has no say, not even where it is missing.
                between = one.where(share == 0, one * (1 - share) + two * share)
                aligned[name] = between.assign_attrs(values.attrs)
            elif "step" not in values.dims:
                aligned[name] = values
        return xr.Dataset(aligned, attrs=node.attrs).assign_coords(
            {self.dimension: self.levels}
        )

    def at(self, steps: np.ndarray, run: Run) -> np.ndarray:
        """Return the lowest loss that a run had reached by a step."""
        lowest = np.minimum.accumulate(self.losses[run.name])
        return np.interp(steps, self.steps[run.name], lowest, left=np.nan, right=np.nan)


def first_crossings(losses: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return where a loss first falls to each level, in places between its values.

    Parameters
    ----------
    losses
        (T,) finite, in the order of the steps; straight between them.
    levels
        (n,) not above the first loss.

    Returns
    -------
    numpy.ndarray
        (n,) from 0 to T − 1; NaN where the loss never falls so far.

    Examples
    --------
    >>> first_crossings(
    ...     np.array([8.0, 6.0, 7.0, 4.0]), np.array([8.0, 7.0, 5.0])
    ... ).round(3)
    array([0.   , 0.5  , 2.667])
    """
    losses = np.asarray(losses, dtype=float)
    places = np.full(len(levels), np.nan)
    for k, level in enumerate(levels):
        reached = np.flatnonzero(losses <= level)
        if len(reached):
            i = int(reached[0])
            places[k] = i and i - 1 + (losses[i - 1] - level) / (
                losses[i - 1] - losses[i]
            )
    return places


def make_clock(
    align: str,
    runs: Sequence[Run],
    tokens_per_step: float | Mapping[str, float] | None,
    voice: Voice,
) -> Clock:
    """Return the clock that `align` names; `voice` is that of the runs.

    Raises
    ------
    ArgumentError
        If it is none of `CLOCKS`, or a run does not tell what it needs.
    """
    check_choice("align", align, CLOCKS)
    if tokens_per_step is not None and align != "tokens":
        raise ArgumentError(
            f'tokens_per_step is used with align="tokens"; got align={align!r}.'
        )
    of_all = isinstance(tokens_per_step, int | float)
    if align == "step" or of_all:
        _check_counted(runs, align)
    if align == "tokens":
        tokens = {run.name: _tokens(run, tokens_per_step) for run in runs}
        return TokenClock(tokens, voice=voice)
    return _loss_clock(runs, voice) if align == "loss" else Clock(voice=voice)


def _check_counted(runs: Sequence[Run], align: str) -> None:
    """Refuse runs that count different things: epoch 3 of one is not step 3 of another."""
    counted = {run.name: run.clock for run in runs}
    if len(set(counted.values())) == 1:
        return
    listed = "; ".join(f"{clock} in {name!r}" for name, clock in counted.items())
    raise ArgumentError(
        f"the runs count different things: {listed}. align={align!r} would put them beside one "
        'another; use align="loss", or align="tokens" with tokens_per_step of each, as '
        '{"run": number}.'
    )


def _tokens(run: Run, rates: float | Mapping[str, float] | None) -> np.ndarray:
    """Return the tokens seen at the steps of a run, as given or as its checkpoints tell."""
    rate = rates.get(run.name) if isinstance(rates, Mapping) else rates
    if rate is not None:
        if (
            isinstance(rate, bool)
            or not isinstance(rate, int | float)
            or not 0 < rate < np.inf
        ):
            raise ArgumentError(
                f"tokens_per_step of {run.name!r} must be a number above 0; got {rate!r}."
            )
        return run.steps * float(rate)
    revisions = run.attribute("trajectory", {}).get("revisions", {})
    seen = [revisions.get(str(step), {}).get("tokens") for step in run.steps.tolist()]
    seen = [
        0 if s is None and step == 0 else s
        for s, step in zip(seen, run.steps, strict=True)
    ]
    if None in seen:
        raise ArgumentError(
            f"the checkpoints of run {run.name!r} do not tell how many tokens they have seen; "
            'give tokens_per_step, a number or {"run": number}, to align by tokens.'
        )
    tokens = np.asarray(seen, dtype=float)
    if (np.diff(tokens) <= 0).any():
        raise ArgumentError(
            f"the tokens of run {run.name!r} do not increase with its steps; give tokens_per_step."
        )
    return tokens


def _loss_clock(runs: Sequence[Run], voice: Voice) -> LossClock:
    nodes = [_track_node(run) for run in runs]
    curves = {
        run.name: _falling(run, *node) for run, node in zip(runs, nodes, strict=True)
    }
    top = min(losses[0] for _, losses in curves.values())
    bottom = max(losses.min() for _, losses in curves.values())
    if not bottom < top:
        ranges = "; ".join(
            f"{losses[0]:.3g} to {losses.min():.3g} in {name!r}"
            for name, (_, losses) in curves.items()
        )
        raise ArgumentError(f"the losses of the runs share no range: {ranges}.")
    levels = np.linspace(top, bottom, max(len(losses) for _, losses in curves.values()))
    steps, losses = ({name: curve[k] for name, curve in curves.items()} for k in (0, 1))
    return LossClock(levels, steps, losses, nodes[0][0], voice=voice)


def _track_node(run: Run) -> tuple[str, str]:
    """Return the node and the variable of a run's loss curve."""
    for name, node in run.nodes.items():
        if node.attrs.get("role") == "track":
            for variable, values in node.data_vars.items():
                if values.dims == ("step",) and values.dtype.kind == "f":
                    return name, str(variable)
    raise ArgumentError(
        f"run {run.name!r} has no loss; study it with the observable 'loss' to align by loss."
    )


def _falling(run: Run, node: str, variable: str) -> tuple[np.ndarray, np.ndarray]:
    """Return steps and loss of a run, which must fall by more than its noise."""
    data = run.nodes[node]
    finite = np.isfinite(data[variable].values)
    steps = data["step"].values[finite]
    losses = data[variable].values[finite].astype(float)
    floor = data.get(f"{variable}_floor")
    noise = (
        0.0
        if floor is None
        else float(np.nanmax(np.nan_to_num(floor.values), initial=0.0))
    )
    if len(losses) < 2 or not losses[0] - losses.min() > noise:
        start = (
            f"from {losses[0]:.3g} to {losses.min():.3g} at best"
            if len(losses)
            else "unknown"
        )
        raise ArgumentError(
            f"the loss of run {run.name!r} does not fall by more than its noise ({start}), so that "
            'it cannot be aligned by loss; use align="step".'
        )
    return steps, losses
