"""Adapters on their base as peft reads them, merged part by part when a tensor is asked for."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections import Counter
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor, nn

from ...errors import CheckpointError, MissingExtraError
from ..weights.digests import tensor_digests
from ..weights.files import state_tensors
from ..weights.inert import few, plain
from ..weights.transformers_models import quiet
from .settings import AdapterSettings, own_name

_NAME = "default"  # what peft calls an adapter in memory
_WHICH = "Is it the right base? Say which with --base (base= in Python)."


def check_peft() -> None:
    """Check that peft is installed.

    Raises
    ------
    MissingExtraError
        If it is not; the message says how to install it.
    """
    if find_spec("peft") is None:
        raise MissingExtraError(
            "adapters are read by peft, which is not installed: pip install 'ontogeny[adapters]'."
        )


class Merged:
    """An adapter on its base; what both hold alike is not copied.

    Parameters
    ----------
    label
        Name of the checkpoint in messages.
    settings
        Of the adapter.
    base
        The module of the base, which stays as it is.

    Attributes
    ----------
    changed
        Names of the tensors that are other ones than the base's, as its module calls them.

    Raises
    ------
    MissingExtraError
        Without peft.
    CheckpointError
        If peft does not read the adapter, or not all of it belongs to the base.
    """

    def __init__(self, label: str, settings: AdapterSettings, base: nn.Module) -> None:
        check_peft()
        self._label = label
        self._base = state_tensors(base)
        versions = {name: tensor._version for name, tensor in self._base.items()}
        model = _opened(label, settings, _sharing(base, settings.shapes()))
        if any(
            tensor._version != versions[name] for name, tensor in self._base.items()
        ):
            raise CheckpointError(
                f"{label}: peft changed the tensors of its base in place."
            )
        self._parts = _parts(model)
        plain_tensors = {
            name: tensor
            for name, tensor in state_tensors(model).items()
            if not self._part(name)
        }
        self._plain = {
            n: t for n, t in plain_tensors.items() if not _is_same(t, self._base.get(n))
        }
        self.changed = {n for n in self._base if n in self._plain or self._part(n)}
        if strange := (plain_tensors.keys() - self._base.keys()):
            raise CheckpointError(
                f"{label} adds tensors to its base: {few(sorted(strange))}."
            )

    def tensor(self, name: str) -> Tensor:
        """Return a changed tensor: the part of the model that holds it is merged, alone.

        Raises
        ------
        CheckpointError
            If peft cannot merge it.
        """
        if name in self._plain:
            return self._plain[name].detach()
        return self.merged(self._part(name))[name]

    def before(self, name: str) -> Tensor:
        """Return a tensor as the base has it."""
        return self._base[name].detach()

    def merged(self, part: str) -> dict[str, Tensor]:
        """Return the tensors of one part, by their names in the base's module."""
        target: Any = copy.deepcopy(self._parts[part])
        try:
            with torch.no_grad(), warnings.catch_warnings(action="ignore"):
                if hasattr(target, "unload_and_optionally_merge_module"):
                    module = target.unload_and_optionally_merge_module(
                        True, False, None
                    )
                else:
                    target.merge()
                    module = target.get_base_layer()
        except Exception as error:  # whatever peft raises
            raise CheckpointError(
                f"{self._label}: peft does not merge {part}: {_reason(error)}."
            ) from error
        return {
            f"{part}.{name}": t.detach() for name, t in state_tensors(module).items()
        }

    def shapes(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Return shape and dtype of all changed tensors, once each part was merged.

        Raises
        ------
        CheckpointError
            If a part cannot be merged, or tensors that the base ties are no longer equal.
        """
        found = {n: (tuple(t.shape), t.dtype) for n, t in self._plain.items()}
        for part in self._parts:
            found |= {
                n: (tuple(t.shape), t.dtype) for n, t in self.merged(part).items()
            }
        if found.keys() != self.changed:
            others = few(sorted(found.keys() ^ self.changed))
            raise CheckpointError(
                f"{self._label}: peft merges other tensors than these: {others}."
            )
        self._check_tied()
        return found

    def _check_tied(self) -> None:
        """Refuse an embedding that is adapted and whose tied head stays as it was."""
        groups: dict[int, list[str]] = {}
        for name, tensor in self._base.items():
            groups.setdefault(id(tensor), []).append(name)
        for first, *others in groups.values():
            for other in others:
                if not torch.equal(self._now(first), self._now(other)):
                    adapted, left = (
                        (first, other) if self._part(first) else (other, first)
                    )
                    raise CheckpointError(
                        f"{self._label} adapts {adapted}, which the base ties to {left}; one "
                        "tensor cannot be both. Untie the base, or train with ensure_weight_tying."
                    )

    def _now(self, name: str) -> Tensor:
        return self.tensor(name) if name in self.changed else self._base[name]

    def _part(self, name: str) -> str:
        """Return the part that a tensor is in, or the empty text."""
        places = name.split(".")
        heads = (".".join(places[:end]) for end in range(1, len(places)))
        return next((head for head in heads if head in self._parts), "")


def _opened(label: str, settings: AdapterSettings, module: nn.Module) -> nn.Module:
    """Return the module with the adapter in it, after checking that peft took in all of it."""
    import peft

    folder = str(settings.folder)
    place: dict[str, Any] = {"torch_device": "cpu", "local_files_only": True}
    try:
        with (
            quiet(),
            warnings.catch_warnings(action="ignore"),
            torch.random.fork_rng(devices=[]),
        ):
            config = peft.PeftConfig.from_pretrained(folder)
            unknown = _unknown(config, settings.table)
            if unknown:
                raise ValueError(
                    f"it does not know the settings {few(unknown)}; update peft"
                )
            model = peft.PeftModel.from_pretrained(
                module, folder, _NAME, config=config, **place
            )
            # Once more, for the report that it gives: what it does not find is no error of its own.
            report = model.load_adapter(folder, _NAME, **place)
    except Exception as error:
        # Whatever peft raises, it is this adapter that is not read.
        text = _reason(error)
        which = (
            f" {_WHICH}"
            if "size mismatch" in text or "not found in the base" in text
            else ""
        )
        raise CheckpointError(
            f"{label} is not read by peft {peft.__version__}: {text}.{which}"
        ) from error
    if strange := _without_copies(report.unexpected_keys, settings):
        raise CheckpointError(
            f"{label} holds adapter tensors that no tensor of its base belongs to: "
            f"{few(strange)}. {_WHICH} A layer that was new beside the base is not "
            "in an adapter, unless modules_to_save names it."
        )
    state = state_tensors(model)
    found = {
        id(tensor) for name, tensor in state.items() if name not in report.missing_keys
    }
    if lacking := [
        name for name in report.missing_keys if id(state[name]) not in found
    ]:
        raise CheckpointError(f"{label} lacks parts of its adapter: {few(lacking)}.")
    return model.get_base_model()


def _without_copies(names: list[str], settings: AdapterSettings) -> list[str]:
    """Return the names without those of tensors that the adapter holds under another name, too.

    Of a larger vocabulary peft saves embeddings by all names that they have in memory.
    """
    digests = tensor_digests(settings.files())
    counts = Counter((own_name(name), digest) for name, digest in digests.items())
    return [name for name in names if counts[own_name(name), digests.get(name, "")] < 2]


def _unknown(config: Any, table: Mapping[str, Any]) -> list[str]:
    """Return the settings that are on and that this peft does not know."""
    known = {field.name for field in dataclasses.fields(config)} | {"runtime_config"}
    return [f"{key} = {table[key]}" for key in table if key not in known and table[key]]


def _sharing(module: nn.Module, stored: Mapping[str, Any]) -> nn.Module:
    """Return the same module, whose tensors are those of `module` but for copies of the `stored`.

    What an adapter saved whole is written over in place; the rest is read alone.
    """
    tensors = state_tensors(module)
    written = {id(tensor) for name, tensor in tensors.items() if name in stored}
    memo: dict[int, Any] = {}
    for tensor in tensors.values():
        data = tensor.detach()
        data = data.clone() if id(tensor) in written else data
        is_parameter = isinstance(tensor, nn.Parameter)
        memo.setdefault(id(tensor), nn.Parameter(data, False) if is_parameter else data)
    return copy.deepcopy(module, memo)


def _parts(module: nn.Module) -> dict[str, nn.Module]:
    """Return the parts that are merged one by one, as `merge_and_unload` of peft finds them."""
    found: dict[str, nn.Module] = {}
    last = ""
    for name, part in module.named_modules():
        if last and name.startswith(f"{last}."):
            continue
        if hasattr(part, "unload_and_optionally_merge_module") or hasattr(
            part, "base_layer"
        ):
            found[name] = part
            last = name
    return found


def _is_same(one: Tensor, other: Tensor | None) -> bool:
    """Return whether two are one piece of memory."""
    return other is not None and (one.data_ptr(), one.shape) == (
        other.data_ptr(),
        other.shape,
    )


def _reason(error: Exception) -> str:
    return plain(" ".join(str(error).split()), 300).rstrip(".")
