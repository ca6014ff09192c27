"""The variables of rows in a result: which are numbers, and what each is in words.

Their names are those of the fields of a row, of the columns in files and of what the page's scripts
read.
"""

from __future__ import annotations

# Variables of rows that a row holds as numbers.
NUMBERS = (
    "first_value",
    "last_value",
    "half_step",
    "half_step_low",
    "half_step_high",
    "settled_step",
    "p_value",
    "p_uncorrected",
    "p_order",
    "p_slow",
    "p_control",
    "p_learned",
    "p_lost",
    "controls_needed",
    "change_floor",
)
_OF_ROW = "those of the row's quantity"


# Every variable of rows in a result, in words and with its units.
NAMES = {
    "row": ("row of the developmental chart", ""),
    "row_name": ("row of the developmental chart, without its layer", ""),
    "row_kind": ("what all rows of the quantity are called", ""),
    "row_compares": ("distance or similarity of a row", ""),
    "row_to": ("which {checkpoint} a row is relative to", ""),
    "row_layer": ("module path of the row", ""),
    "row_quantity": ("quantity of the row", ""),
    "noise_known": ("whether the noise of the row was measured", ""),
    "progress": ("share of the way from the first to the last value", "1"),
    "distinct": ("changed above the noise floor", ""),
    "half_step": ("half-change {point}", "{step}s"),
    "settled_step": (
        "{checkpoint} from which on it moves less than its noise, half of it over",
        "{step}s",
    ),
    "first_value": ("first value", _OF_ROW),
    "last_value": ("last value", _OF_ROW),
    "moved": ("changed by more than its noise", ""),
    "only_memory": (
        "explained by the memory of the reference {checkpoint} as well",
        "",
    ),
    "own_value": ("a value of its own, no distance to another {checkpoint}", ""),
    "own_change_test": ("whether the row has a test of change on its own examples", ""),
    "p_uncorrected": ("p-value against noise with short memory", "1"),
    "p_order": ("p-value against any order of the {checkpoint}s", "1"),
    "p_slow": ("p-value against slow noise", "1"),
    "smallest_p": ("smallest p-value that so many {checkpoint}s could give", "1"),
    "p_value": (
        "p-value against noise with short memory, corrected over the page",
        "1",
    ),
    "reason": ("which test decided that it did not change", ""),
    "p_control": ("p-value against control runs, corrected over the page", "1"),
    "p_control_change": ("p-value of the change against control runs", "1"),
    "p_control_half": ("p-value of the half-change {point} against control runs", "1"),
    "p_control_share": ("share of a test that it counts as against control runs", "1"),
    "control_first": ("first value in each control run", _OF_ROW),
    "control_last": ("last value in each control run", _OF_ROW),
    "control_half_step": ("half-change {point} in each control run", "{step}s"),
    "run_change": ("change at the {checkpoint}s of each control run", _OF_ROW),
    "run_half_step": (
        "half-change {point} at the {checkpoint}s of each control run",
        "{step}s",
    ),
    "lead": ("last value above the null that it must beat", "standard errors"),
    "change_floor": ("noise of the change from first to last", _OF_ROW),
    "p_learned_uncorrected": ("p-value of the gain where nothing was learned", "1"),
    "p_learned": (
        "p-value of the gain where nothing was learned, corrected over the page",
        "1",
    ),
    "p_lost_uncorrected": ("p-value of the loss where nothing was forgotten", "1"),
    "p_lost": (
        "p-value of the loss where nothing was forgotten, corrected over the page",
        "1",
    ),
    "controls_needed": ("control runs of the same spread that would decide", "runs"),
    "outside": (
        "on one side of all control runs; of performance on the better one",
        "",
    ),
    "not_improved": ("performance surely no better than at first", ""),
    "judgeable": ("whether it changed can be said", ""),
    "can_learn": ("performance on held-out texts or labels", ""),
    "better_sign": ("direction of better performance", "1"),
    "changed": ("changed by more than noise and chance", ""),
    "beyond": ("changed beyond controls", ""),
    "learned": ("performance improved more than it does where nothing is learned", ""),
    "lost": ("performance got worse by more than texts and motion give", ""),
}
