"""Tensors of an adapted model, each computed from the base and the adapter when it is read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from ...errors import CheckpointError
from ..weights.files import Reader
from ..weights.inert import few
from .settings import AdapterSettings

_PART = re.compile(
    r"(?P<module>.+)\.(?P<part>lora_A|lora_B|lora_embedding_A|lora_embedding_B"
    r"|lora_magnitude_vector)(?:\.default)?(?:\.weight)?"
)
_WRAPPER = re.compile(r"\b(?:base_layer|modules_to_save(?:\.default)?)\.")
# Families whose layers store weights as (in, out); their heads do not.
_STORED_IN_OUT = frozenset({"gpt2", "openai-gpt", "imagegpt", "decision_transformer"})
_EMBEDDING = re.compile(r"(?:.*\.)?(?:wte|embed_tokens|embed_in|\w*embeddings|shared)\.weight")
_HEAD = re.compile(r"(?:.*\.)?(?:lm_head|score|classifier|qa_outputs)\..*")


def partner(name: str, names: Iterable[str]) -> str | None:
    """Return the stored name of a tensor, where the files may have more or less of its path.

    Examples
    --------
    >>> partner("transformer.h.0.weight", ["h.0.weight"]), partner("h.0.w", ["a.h.0.w", "b.h.0.w"])
    ('h.0.weight', None)
    """
    names = list(names)
    if name in names:
        return name
    near = [n for n in names if n.endswith(f".{name}") or name.endswith(f".{n}")]
    return near[0] if len(near) == 1 else None


class Plan:
    """Which tensors of an adapter belong to which tensor of the base.

    Attributes
    ----------
    parts
        ``{name: {part: name in the adapter}}`` of what is base + scale B A.
    modules
        The module of each of these, as the adapter names it.
    whole
        ``{name: name in the adapter}`` of what the adapter holds whole.
    """

    def __init__(self, label: str, adapter: Iterable[str], base: Iterable[str]) -> None:
        base = list(base)
        self.parts: dict[str, dict[str, str]] = {}
        self.modules: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        strange = []
        for name in adapter:
            inner = name.removeprefix("base_model.model.")
            match = _PART.fullmatch(inner)
            if match is None:
                if "lora_" in inner:
                    strange.append(name)
                plain_name = _WRAPPER.sub("", inner)
                self.whole[partner(plain_name, base) or plain_name] = name
                continue
            target = partner(f"{match['module']}.weight", base)
            if target is None:
                strange.append(name)
                continue
            part = match["part"].replace("_embedding", "")
            self.parts.setdefault(target, {})[part] = name
            self.modules[target] = match["module"]
        if strange:
            raise CheckpointError(
                f"{label} holds adapter tensors that no tensor of its base belongs to: "
                f"{few(strange)}. Is it the right base? Say which with --base (base= in Python). A "
                "layer that was new beside the base is not in an adapter, unless modules_to_save "
                "names it."
            )

    def embedding(self, saved: Iterable[str]) -> str | None:
        """Return an embedding that is adapted, or among the modules that are `saved` whole."""
        adapted = [n for n, parts in self.parts.items() if "embedding" in parts.get("lora_A", "")]
        copies = [n for n in self.whole if _EMBEDDING.fullmatch(n) and n.split(".")[-2] in saved]
        return next(iter((*adapted, *copies)), None)


class AdaptedReader:
    """Reader over base + scale B A; DoRA scales the rows of the sum to the learned lengths."""

    def __init__(
        self, base: Reader, adapter: Reader, settings: AdapterSettings, family: str, label: str
    ) -> None:
        self._base, self._adapter, self._settings = base, adapter, settings
        self._family, self._label = family, label
        self.plan = Plan(label, adapter.names(), base.names())

    def names(self) -> list[str]:
        """Return the names of the base and of what only the adapter has, sorted."""
        return sorted({*self._base.names(), *self.plan.whole})

    def _source(self, name: str) -> tuple[Reader, str]:
        """Return where a tensor lies before B A is added: peft saves some embeddings whole."""
        whole = self.plan.whole.get(name)
        return (self._base, name) if whole is None else (self._adapter, whole)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of tensor `name`."""
        reader, inner_name = self._source(name)
        return reader.shape(inner_name)

    def dtype(self, name: str) -> torch.dtype:
        """Return the dtype: of what is adapted, one that holds base and adapter."""
        reader, inner_name = self._source(name)
        result = reader.dtype(inner_name)
        for part in self.plan.parts.get(name, {}).values():
            result = torch.promote_types(result, self._adapter.dtype(part))
        return result

    def get(self, name: str) -> Tensor:
        """Return tensor `name`."""
        reader, inner_name = self._source(name)
        weight = reader.get(inner_name)
        if name not in self.plan.parts:
            return weight
        left, right, transposed = self._factors(name)
        weight = weight.to(self.dtype(name)) + (left @ right).to(self.dtype(name))
        if self._settings.is_dora:
            length = self._adapter.get(self.plan.parts[name]["lora_magnitude_vector"])
            dim = 0 if transposed else 1
            factor = length.to(weight.dtype) / torch.linalg.norm(weight, dim=dim)
            weight = weight * factor.unsqueeze(dim)
        return weight

    def rows(self, name: str, start: int, stop: int) -> Tensor:
        """Return ``tensor[start:stop]``, without the other rows unless it is DoRA's."""
        reader, inner_name = self._source(name)
        if name in self.plan.parts and self._settings.is_dora:
            return self.get(name)[start:stop]
        part = reader.rows(inner_name, start, stop)
        if name not in self.plan.parts:
            return part
        left, right, _ = self._factors(name)
        dtype = self.dtype(name)
        return part.to(dtype) + (left[start:stop] @ right).to(dtype)

    def _factors(self, name: str) -> tuple[Tensor, Tensor, bool]:
        """Return two matrices whose product is added, and whether they are transposed for it."""
        parts: Mapping[str, str] = self.plan.parts[name]
        if not {"lora_A", "lora_B"} <= parts.keys() or self._settings.is_dora != (
            "lora_magnitude_vector" in parts
        ):
            raise CheckpointError(f"{self._label} lacks parts of the adapter of {name}.")
        down, up = (self._adapter.get(parts[key]).float() for key in ("lora_A", "lora_B"))
        up = up * self._settings.scale(self.plan.modules[name], down.shape[0])
        shape, plain = self.shape(name), (up.shape[0], down.shape[1])
        if shape not in {plain, plain[::-1]}:
            raise CheckpointError(
                f"{self._label}: the adapter of {name} has shape {plain}, its base {shape}; is it "
                "the right base? Say which with --base (base= in Python)."
            )
        transposed = shape != plain or (shape == plain[::-1] and self._is_in_out(name))
        if "embedding" in parts["lora_A"]:
            if self._settings.is_dora:
                raise CheckpointError(f"{self._label}: DoRA of the embedding {name} is not read.")
            transposed = True
        return (down.T, up.T, True) if transposed else (up, down, False)

    def _is_in_out(self, name: str) -> bool:
        by_family = self._family in _STORED_IN_OUT and not _HEAD.fullmatch(name)
        # Stored as (in, out), as GPT-2's are.
        return by_family or bool(self._settings.table.get("fan_in_fan_out"))
