"""Directions as people bring them: files of arrays, arrays, and linear classifiers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ...arrays import is_array, to_numpy
from ...errors import ArgumentError

SUFFIXES = (".npy", ".npz", ".safetensors")


@runtime_checkable
class LinearClassifier(Protocol):
    """What a fitted linear classifier of scikit-learn has."""

    coef_: Any


@runtime_checkable
class ArrayLike(Protocol):
    """What NumPy makes an array of, such as a tensor or the direction of a concept."""

    def __array__(self) -> Any:
        """Return it as an array."""


GivenDirections: TypeAlias = (
    str | Path | Mapping[str, Any] | tuple[Any, ...] | LinearClassifier | ArrayLike
)


class Brought(NamedTuple):
    """Named directions of one layer.

    Attributes
    ----------
    names
        One for each, all different.
    vectors
        (r, m) float64.
    """

    names: tuple[str, ...]
    vectors: np.ndarray

    @property
    def digest(self) -> str:
        """Hex digest of names and numbers."""
        digest = hashlib.blake2b(repr(self.names).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(self.vectors).tobytes())
        return digest.hexdigest()


def brought(value: Any) -> Brought:
    """Return the directions of a file, an array, a mapping of arrays or a linear classifier.

    Parameters
    ----------
    value
        A path to ``.npy``, ``.npz`` or ``.safetensors``; an array or tensor (m,) or (r, m); a
        mapping from names to such arrays; or what has ``coef_``, named by its ``classes_``.

    Raises
    ------
    ArgumentError
        If it is none of these, or a direction is 0, NaN or infinite, or their widths differ.

    Examples
    --------
    >>> brought({"refusal": np.array([0.0, 2.0])}).names
    ('refusal',)
    >>> brought(np.zeros(3))
    Traceback (most recent call last):
    ontogeny.errors.ArgumentError: directions must not be 0 everywhere; 'direction' is.
    """
    value = value[0] if _is_one_path(value) else value
    if isinstance(value, str | Path):
        path = Path(value).expanduser()
        return _checked(_named(path.stem, read_arrays(path)), str(value))
    if hasattr(value, "coef_"):
        return _checked(_of_classifier(value), "coef_")
    if isinstance(value, Mapping):
        return _checked(_named("", value), "the mapping")
    if hasattr(value, "__array__") and not is_array(value):
        value = np.asarray(value)
    if is_array(value) or isinstance(value, list | tuple):
        return _checked(_named("direction", {"": value}), "the array")
    raise ArgumentError(
        f"directions must be a file ({', '.join(SUFFIXES)}), an array, a mapping of arrays or a "
        f"classifier with coef_; got {type(value).__name__}."
    )


def _is_one_path(value: Any) -> bool:
    """Return whether a value is a list of one path, as study files give it."""
    return isinstance(value, list | tuple) and len(value) == 1 and _is_path(value[0])


def _is_path(value: Any) -> bool:
    return isinstance(value, str | Path)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a file by name; ``""`` names the one array of ``.npy``.

    Raises
    ------
    ArgumentError
        If there is no such file, or it does not hold arrays alone.
    """
    if path.suffix not in SUFFIXES:
        raise ArgumentError(
            f"a file of arrays must end in {', '.join(SUFFIXES)}; got {str(path)!r}. Nothing is "
            "unpickled: save the coef_ of a classifier with numpy.save."
        )
    if not path.is_file():
        raise ArgumentError(f"there is no file {str(path)!r}.")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            return {name: to_numpy(t.float()) for name, t in load_file(path).items()}
        loaded = np.load(path, allow_pickle=False)
        return {"": loaded} if path.suffix == ".npy" else dict(loaded.items())
    except Exception as error:  # of a damaged file, whatever a reader raises
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ArgumentError(f"{str(path)!r} holds no arrays: {why}") from None


def _of_classifier(classifier: Any) -> dict[str, np.ndarray]:
    """Return the coefficients of a fitted linear classifier by the class that they speak for."""
    weights = np.atleast_2d(to_numpy(classifier.coef_))
    classes = [str(label) for label in getattr(classifier, "classes_", range(2))]
    names = classes if len(weights) == len(classes) else classes[-1:]
    if len(names) != len(weights):
        names = [f"coef {i}" for i in range(len(weights))]
    return dict(zip(names, weights, strict=True))


def _named(stem: str, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return vectors by name; the rows of a table are numbered."""
    vectors: dict[str, np.ndarray] = {}
    for key, value in arrays.items():
        table = to_numpy(value)
        name = str(key) or stem
        if table.ndim == 1:
            vectors[name] = table
        elif table.ndim == 2:
            one = len(table) == 1
            vectors |= {
                name if one else f"{name} {i}": row for i, row in enumerate(table)
            }
        else:
            raise ArgumentError(
                f"directions must have shape (m,) or (r, m); {name!r} has {table.shape}."
            )
    return vectors


def _checked(vectors: Mapping[str, np.ndarray], where: str) -> Brought:
    if not vectors:
        raise ArgumentError(
            f"directions must name at least one array; {where} holds none."
        )
    widths = {name: len(vector) for name, vector in vectors.items()}
    if len({*widths.values()}) > 1:
        raise ArgumentError(
            f"directions of one layer must have one width; got {_listed(widths)}."
        )
    for name, vector in vectors.items():
        if vector.dtype.kind not in "fiu":
            raise ArgumentError(
                f"directions must hold numbers; {name!r} has {vector.dtype}."
            )
        if not np.isfinite(vector).all():
            raise ArgumentError(
                f"directions must be finite; {name!r} holds NaN or infinity."
            )
        if not np.abs(vector).max(initial=0) > 0:
            raise ArgumentError(f"directions must not be 0 everywhere; {name!r} is.")
    table = np.stack([vector.astype(np.float64) for vector in vectors.values()])
    return Brought(tuple(vectors), table)


def _listed(widths: Mapping[str, int]) -> str:
    some = [f"{width} of {name!r}" for name, width in list(widths.items())[:3]]
    return ", ".join(some)
