"""What to do about a failure, from its reason."""

from __future__ import annotations

_READ_AGAIN = (
    "Repair the checkpoint or download it again, and run the study again: what is missing is "
    "computed then, and nothing else."
)
_FINITE = (
    "The model gives NaN or infinity there. If the weights are finite, a wider dtype may help; "
    "otherwise leave these steps out with select."
)
_SMALLER = "Lower batch_size or max_tokens, or use fewer workers, and run the study again."
_CHANGE = (
    "Change what the message names, in the study file or in the model, and run the study again: "
    "what is finished is kept."
)
_OTHERWISE = (
    "Run the study again with --verbose to see where it comes from: what failed is tried again, "
    "and what is finished is kept."
)
_ADVICE = {
    ("missing:", "CheckpointError"): _READ_AGAIN,
    ("NonFiniteError",): _FINITE,
    ("OutOfMemory", "out of memory", "MemoryError"): _SMALLER,
    ("ArgumentError", "LayerMatchError"): _CHANGE,
}


def advice(why: str) -> str:
    """Return what to do about a failure with this reason.

    Examples
    --------
    >>> advice("failed: NonFiniteError: the loss is not finite")[:37]
    'The model gives NaN or infinity there'
    """
    for words, then in _ADVICE.items():
        if any(word in why for word in words):
            return then
    return _OTHERWISE
