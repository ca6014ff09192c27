"""Tables of a study file: their keys, and the kinds of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ArgumentError, check_known
from ..observables.arguments import check_kind


def check_keys(
    where: str, table: Mapping[str, Any], allowed: Mapping[str, Any]
) -> None:
    """Refuse unknown keys, and values of another kind than `allowed` says."""
    check_known(where, "key", table, allowed)
    for key, value in table.items():
        check_kind(where, key, value, allowed[key])


def as_table(where: str, value: Any) -> Mapping[str, Any]:
    """Return a table, or refuse anything else."""
    if not isinstance(value, Mapping):
        raise ArgumentError(f"[{where}] must be a table; got {value!r}.")
    return value


def as_tables(where: str, value: Any) -> list[Mapping[str, Any]]:
    """Return a list of tables, or refuse anything else."""
    if not isinstance(value, list) or not all(isinstance(v, Mapping) for v in value):
        raise ArgumentError(f"{where} must be given as [[{where}]] tables.")
    return value


def as_list(value: Any) -> list[Any]:
    """Return a list, of one if the value is none."""
    return value if isinstance(value, list) else [value]
