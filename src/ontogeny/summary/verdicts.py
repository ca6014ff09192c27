"""What is said of the rows of a whole page: changed, changed beyond its motion, learned.

A row *moved* if its change from first to last exceeds its noise. It *changed* if its course is also
more than noise between checkpoints would give, and slow noise hardly ever looks like it. It changed
*beyond its motion* if turned runs, which moved as far in other directions, do not give the same. It
was *learned* if it is performance on held-out texts or labels, improved by more than where nothing
is learned (`learning`), and by more than every control. It was *lost* if it got worse by more than
motion as far harms. Each is corrected over all rows of the page, but for slow noise, which is asked
of each row. Of what was learned or lost each node has an equal share of the level.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np
import xarray as xr

from ..dynamics import holm
from ..dynamics.reasons import OPEN, Reason, reasons
from ..trees import Nodes, found_in
from ..words.controls import began_trained
from ..words.levels import Levels
from .controls import control_p_values
from .learning import controls_needed, got_worse, improved

# By these every result is judged, and what is said of it reads them from the result.
LEVELS = Levels(change=0.01, control=0.05)

_MOTION = "motion"


def judged(nodes: Nodes) -> dict[str, xr.Dataset]:
    """Return the nodes of a page with verdicts on their rows.

    Parameters
    ----------
    nodes
        Datasets by name; those with rows as `chart_rows` measures them are judged together. Rows
        that follow the motion of weights (role ``"motion"``) are corrected for their own number.

    Returns
    -------
    dict
        The nodes, with over rows: ``p_value`` (Holm over the page), ``changed``, ``beyond`` and
        ``learned``, ``reason`` (which test decided that it did not change, a
        `ontogeny.dynamics.reasons.Reason`) and ``judgeable`` (it decides); with control runs
        ``p_control``. The attribute ``levels`` holds `LEVELS`.

    References
    ----------
    S. Holm, Scandinavian Journal of Statistics 6, 1979.

    Examples
    --------
    >>> rows = xr.Dataset(
    ...     {
    ...         "p_uncorrected": ("row", [0.001, 0.4]),
    ...         "smallest_p": ("row", [0.0001, 0.0001]),
    ...         "noise_known": ("row", [True, True]),
    ...         "moved": ("row", [True, True]),
    ...     }
    ... )
    >>> judged({"norms": rows})["norms"].changed.values
    array([ True, False])
    >>> judged({"norms": rows})["norms"].reason.values.tolist()
    ['', 'short memory']
    """
    with_rows = {name: node for name, node in nodes.items() if "p_uncorrected" in node}
    motion = [n for n, node in with_rows.items() if node.attrs.get("role") == _MOTION]
    verdicts = dict(nodes)
    for family in ([n for n in with_rows if n not in motion], motion):
        verdicts |= _together({name: with_rows[name] for name in family})
    return {name: verdicts[name] for name in nodes}


def with_verdicts(nodes: Nodes) -> dict[str, xr.Dataset]:
    """Return judged nodes; where the run began trained no row is compared with motion."""
    if began_trained(nodes.values()):
        nodes = {name: _after_trained_start(node) for name, node in nodes.items()}
    return judged(nodes)


def _after_trained_start(node: xr.Dataset) -> xr.Dataset:
    """Return a node whose rows are compared with no motion that harms what the start knows."""
    if "p_control_change" not in node:
        return node
    p_values = control_p_values(node, trained_start=True)
    return node.assign(
        {f"p_control_{name}": ("row", p) for name, p in p_values.items()}
    )


def _together(nodes: Nodes) -> dict[str, xr.Dataset]:
    """Judge nodes whose rows are one family of tests."""
    if not nodes:
        return {}
    tests = sum(
        int(np.isfinite(d["p_uncorrected"].values).sum()) for d in nodes.values()
    )
    tests = max(tests, 1)
    ends = np.cumsum([d.sizes["row"] for d in nodes.values()])[:-1]
    # Each corrected over all nodes together.
    of_order, two_sided, gains, losses, shares = (
        np.concatenate(list(map(of, nodes.values())))
        for of in (
            lambda node: node["p_uncorrected"].values,
            _two_sided,
            _gains,
            _losses,
            _shares,
        )
    )
    names: list[tuple[str, str]] = []
    for name, node in nodes.items():
        names += [(name, quantity) for quantity in _quantities(node)]
    owners = [name for name, _ in names]
    of_gains = _equal_shares(gains, owners)
    corrected = {
        "p_value": holm(of_order),
        "p_control": _beside_controls(two_sided, shares, names),
        "p_learned": holm(gains, of_gains),
        "p_lost": holm(losses, _equal_shares(losses, owners)),
        "level": LEVELS.control * np.where(np.isfinite(gains), of_gains, 1 / tests),
    }
    of_nodes = zip(
        nodes.items(), *(np.split(p, ends) for p in corrected.values()), strict=True
    )
    return {
        name: _verdicts(node, dict(zip(corrected, p_values, strict=True)), tests)
        for (name, node), *p_values in of_nodes
    }


def _two_sided(node: xr.Dataset) -> np.ndarray:
    """Return for each row whether controls give its change or its half-change step, as one p."""
    if "run" not in node.dims:
        return np.full(node.sizes["row"], np.nan)
    both = np.stack([node["p_control_change"].values, node["p_control_half"].values])
    # Twice also where one is known: counted once, 51 of 804 runs like their controls were beyond.
    return np.minimum(2 * np.fmin(*both), 1.0)


def _shares(node: xr.Dataset) -> np.ndarray:
    """Return as which share of a test each row counts against control runs."""
    return found_in(node, "p_control_share", xr.ones_like(node["p_uncorrected"])).values


def _quantities(node: xr.Dataset) -> list[str]:
    """Return of which quantity each row is."""
    names = found_in(node, "row_quantity")
    return [""] * node.sizes["row"] if names is None else list(map(str, names.values))


def _beside_controls(
    p_values: np.ndarray, shares: np.ndarray, quantities: Sequence[tuple[str, str]]
) -> np.ndarray:
    """Return p-values corrected as `holm` does, where rows count as shares of a test.

    The rows of a quantity that are left count as before, up to all that it has: one of them alone
    is a whole test, which a share for each would make a twelfth.
    """
    corrected = np.full(len(p_values), np.nan)
    largest = 0.0
    order = [
        i
        for i in np.argsort(p_values * shares, kind="stable")
        if np.isfinite(p_values[i])
    ]
    sizes = Counter(quantities)
    left = Counter(quantities[i] for i in order)
    share = dict(zip(quantities, shares.tolist(), strict=True))
    for i in order:
        tests = sum(
            min(sizes[name], count / share[name])
            for name, count in left.items()
            if count
        )
        largest = max(largest, min(1.0, p_values[i] * shares[i] * tests))
        corrected[i] = max(largest, p_values[i])
        left[quantities[i]] -= 1
    return corrected


def _equal_shares(p_values: np.ndarray, nodes: Sequence[str]) -> np.ndarray:
    """Return weights (rows,) with which each node has an equal share of the level.

    Of a tuned model whose loss fell from 4.0 to 1.0 (p = .0096) nothing was shown: it was one row
    beside 24 of minimal pairs.
    """
    tested = Counter(compress(nodes, np.isfinite(p_values)))
    return np.array([1 / max(len(tested) * tested[name], 1) for name in nodes])


def _gains(node: xr.Dataset) -> np.ndarray:
    """Return for each row of performance how likely it is where nothing was learned."""
    return _one_sided(node, "p_learned_uncorrected")


def _losses(node: xr.Dataset) -> np.ndarray:
    """Return for each row of performance how likely it is where nothing was lost."""
    return _one_sided(node, "p_lost_uncorrected")


def _one_sided(node: xr.Dataset, name: str) -> np.ndarray:
    return node[name].values if name in node else np.full(node.sizes["row"], np.nan)


def _reasons(node: xr.Dataset, p_value: np.ndarray, tests: int) -> np.ndarray:
    """Return for each row which test decided that it did not change, without control runs."""
    nothing = xr.zeros_like(node["p_uncorrected"])
    shown = _reached(p_value, LEVELS.change)
    found = reasons(
        noise_known=node["noise_known"].values,
        tested=np.isfinite(p_value),
        reachable=node["smallest_p"].values * tests <= LEVELS.change,
        moved=node["moved"].values,
        p_order=found_in(node, "p_order", nothing).values,
        shown=shown,
        only_memory=found_in(node, "only_memory", xr.zeros_like(node["moved"])).values,
        p_slow=found_in(node, "p_slow", nothing).values,
    )
    own_test = found_in(node, "own_change_test", xr.zeros_like(node["moved"])).values
    # So many examples turned, all the same way at each step, and noise may do so as well.
    few = node["p_uncorrected"].values <= node["smallest_p"].values
    not_shown = np.where(few, str(Reason.FEW), str(Reason.EXAMPLES))
    return np.where(own_test, np.where(shown, str(Reason.NONE), not_shown), found)


def _verdicts(
    node: xr.Dataset, p_values: Mapping[str, np.ndarray], tests: int
) -> xr.Dataset:
    p_value = p_values["p_value"]
    p_control = p_values["p_control"]
    memory = found_in(node, "only_memory", xr.zeros_like(node["moved"])).values
    # Jitter with memory comes back to where it was; a turned run does not, so that it is no control
    # for jitter alone.
    moved = node["moved"].values & ~memory
    enough = _reached(p_values["p_learned"], LEVELS.control)  # unless texts are too few
    learned = moved & enough
    learned &= improved(node) if "better_sign" in node else False
    lost = moved & _reached(p_values["p_lost"], LEVELS.control)
    lost &= got_worse(node) if "better_sign" in node else False
    beyond = learned | lost | (moved & _reached(p_control, LEVELS.control))
    reason = np.where(beyond, str(Reason.NONE), _reasons(node, p_value, tests)).astype(
        object
    )
    verdicts = {
        "p_value": p_value,
        "judgeable": ~np.isin(reason, OPEN),
        "changed": reason == Reason.NONE,
        "reason": reason,
        "beyond": beyond,
        "learned": learned,
        "lost": lost,
    }
    verdicts |= {
        n: p_values[n] for n in ("p_learned", "p_lost") if f"{n}_uncorrected" in node
    }
    if "run" in node.dims:
        verdicts["p_control"] = p_control
        needed = controls_needed(node, p_values["level"])
        # More cannot replace texts.
        there = np.where(enough, float(node.sizes["run"]), np.nan)
        verdicts["controls_needed"] = np.where(node["moved"].values, needed, there)
    words = {name: node[name].attrs if name in node else {} for name in verdicts}
    node = node.assign({name: ("row", v, words[name]) for name, v in verdicts.items()})
    return node.assign_attrs(LEVELS.attributes())


def _reached(p_values: np.ndarray, level: float) -> np.ndarray:
    return np.nan_to_num(p_values, nan=1.0) <= level
