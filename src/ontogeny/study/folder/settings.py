"""The settings of a study: what changes its numbers, resolved to explicit values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ArgumentError, check_choice, check_whole

if TYPE_CHECKING:
    from ...capture import ReadingSettings


DTYPES = ("stored", "float32", "float64", "bfloat16", "float16")


@dataclass(frozen=True)
class Settings:
    """Everything beside weights, inputs and observables that can change a number.

    Attributes
    ----------
    dtype
        Of the weights; ``"stored"`` until the first checkpoint was examined.
    weights
        ``"loaded"``, ``"streamed"`` from the files, or ``"rebuilt"``, into a new module at every
        checkpoint: no number depends on it.
    first_steps
        Steps that the folder was begun with, once they are enough: fits over steps keep to them.
    """

    reference_step: int
    noise_steps: tuple[int, ...]
    batch_size: int = 16
    device: str = "cpu"
    dtype: str = "stored"
    threads: int = 1
    weights: str = "loaded"
    positions: str = "auto"
    first_steps: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("weights", self.weights, ("loaded", "streamed", "rebuilt"))
        for name in ("batch_size", "threads"):
            check_whole(name, getattr(self, name))

    def reading(self) -> dict[str, Any]:
        """Return the part that every forward pass depends on, as fingerprint components."""
        device = self.device.split(":")[0]
        return {
            "batch_size": self.batch_size,
            "device": device,
            "dtype": self.dtype,
            "threads": self.threads,
            "positions": self.positions,
        }

    def reading_settings(self) -> ReadingSettings:
        """Return how models are read."""
        from ...capture import ReadingSettings

        return ReadingSettings(self.batch_size, self.device, self.positions)

    def torch_dtype(self) -> Any:
        """Return the dtype of the weights as PyTorch's, None for the stored one."""
        import torch

        return None if self.dtype == "stored" else getattr(torch, self.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return all settings as plain data."""
        fields = {**asdict(self), "noise_steps": list(self.noise_steps)}
        del fields["first_steps"]  # states say which steps they were fitted on
        return fields


ENOUGH = 12  # steps that a fit over steps can keep to while further ones come


def first_steps(steps: Sequence[int], frozen: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the steps that a folder was begun with, if there were at least 12, else all.

    Examples
    --------
    >>> begun = {"first_steps": list(range(12))}
    >>> (
    ...     first_steps(range(20), begun) == tuple(range(12)),
    ...     first_steps([0, 1], {"first_steps": [0]}),
    ... )
    (True, (0, 1))
    """
    recorded = frozen.get("first_steps", frozen.get("steps", ()))
    return tuple(int(s) for s in (recorded if len(recorded) >= ENOUGH else steps))


def resolve_reference(
    reference: str | int, steps: Sequence[int], frozen: Mapping[str, Any]
) -> int:
    """Return the reference step: an explicit one, or the first or last, frozen once chosen.

    A growing run keeps the reference that its store began with.

    Examples
    --------
    >>> resolve_reference("last", [0, 10, 20], {})
    20
    >>> resolve_reference(
    ...     "last", [0, 10, 20, 30], {"reference": "last", "reference_step": 20}
    ... )
    20
    """
    if isinstance(reference, int) and not isinstance(reference, bool):
        if reference not in steps:
            near = min(steps, key=lambda s: abs(s - reference))
            raise ArgumentError(
                f"reference must be a step of the trajectory; got {reference}, nearest {near}."
            )
        return reference
    check_choice("reference", reference, ("first", "last"))
    if frozen.get("reference") == reference and frozen.get("reference_step") in steps:
        return int(frozen["reference_step"])
    return int(steps[0] if reference == "first" else steps[-1])


def old_reference(
    reference: str | int, steps: Sequence[int], frozen: Mapping[str, Any]
) -> str:
    """Return that a frozen reference is no longer the first or last step; empty if it is.

    Examples
    --------
    >>> frozen = {"reference": "last", "reference_step": 20}
    >>> old_reference("last", [0, 10, 20, 30], frozen)
    'the reference is step 20, which was the last when this study was begun; it is step 30 now'
    >>> old_reference("last", [0, 10, 20], frozen)
    ''
    """
    if frozen.get("reference") != reference or reference not in ("first", "last"):
        return ""
    old = resolve_reference(reference, steps, frozen)
    now = resolve_reference(reference, steps, {})
    if old == now:
        return ""
    return (
        f"the reference is step {old}, which was the {reference} when this study was begun; it is "
        f"step {now} now"
    )


def without_reference(frozen: Mapping[str, Any], forget: bool) -> dict[str, Any]:
    """Return what a folder has frozen, without the reference step where that is to be chosen anew.

    Examples
    --------
    >>> without_reference({"reference": "last", "reference_step": 20, "noise": 5}, True)
    {'reference': 'last', 'noise': 5}
    """
    return {k: v for k, v in frozen.items() if not forget or k != "reference_step"}


def noise_steps(
    steps: Sequence[int], count: int, frozen: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return about `count` steps spread evenly over the order of `steps`, first and last included.

    None for a count of 0. Steps that a store has chosen before are kept while they exist.

    Examples
    --------
    >>> noise_steps([0, 1, 2, 4, 8, 16, 32, 64, 128], 5)
    (0, 2, 8, 32, 128)
    """
    if frozen and all(step in steps for step in frozen):
        return tuple(int(s) for s in frozen)
    check_whole("noise", count, 0)
    positions = np.unique(
        np.linspace(0, len(steps) - 1, min(count, len(steps))).round().astype(int)
    )
    return tuple(int(steps[i]) for i in positions)


def resolve_device(device: str) -> str:
    """Return the device, with ``"auto"`` resolved to a GPU where there is one.

    Examples
    --------
    >>> resolve_device("cpu")
    'cpu'
    """
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (
        RuntimeError,
        AssertionError,
    ):  # of a device that is none, or is not built in
        raise ArgumentError(
            f"device must be 'auto' or one that is here: {', '.join(_devices())}; got {device!r}."
        ) from None
    return device


def _devices() -> list[str]:
    """Return the names of the devices of this machine."""
    import torch

    gpus = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return ["cpu", *gpus, *mps]
