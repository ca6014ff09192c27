"""The configuration of a checkpoint, without keys that do not define the model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from torch import nn

from ...errors import CheckpointError
from .inert import plain

CONFIGURATION = "config.json"
_MISSING = object()
# Where it was loaded from, with what it was written, and how it happens to be run.
_NOT_THE_MODEL = {
    "_name_or_path",
    "name_or_path",
    "transformers_version",
    "use_cache",
    "_attn_implementation",
    "_attn_implementation_autoset",
    "_attn_implementation_internal",
    "attn_implementation",
}
# What text is generated with; no forward pass reads it. The Trainer sets it when training begins.
_OF_GENERATION = {"bos_token_id", "eos_token_id"}
# What no forward pass in eval mode depends on: names of labels, the kind of loss (which
# transformers notes at the first forward pass of a classifier), what is dropped in training.
_OF_TRAINING = re.compile(
    r"problem_type|id2label|label2id|num_labels|unsloth_.*|task_specific_params|torchscript"
    r"|gradient_checkpointing|initializer_.*|finetuning_task|_commit_hash|return_dict"
    r"|output_(?:attentions|hidden_states|scores|past|logits|router_logits)"
    r"|(?:.*_)?(?:dropout|drop|pdrop|layerdrop)(?:_.*)?"
)


def read_configuration(
    source: Path | nn.Module | None, whole: bool = False
) -> dict[str, Any] | None:
    """Return the configuration of a checkpoint folder or module, or None if it has none.

    Keys that do not define the model are left out unless it is asked for as a `whole`.

    Raises
    ------
    CheckpointError
        If config.json is not a JSON object, or is deleted while it is looked for.
    """
    if isinstance(source, Path):
        path = source / CONFIGURATION
        if not path.is_file():
            return None
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CheckpointError(f"{path} is gone.") from None
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path} is not JSON: {error}.") from None
        if not isinstance(raw, dict):
            raise CheckpointError(f"{path} must hold a JSON object.")
    else:
        to_dict = getattr(getattr(source, "config", None), "to_dict", None)
        if to_dict is None:
            return None
        raw = json.loads(json.dumps(to_dict(), default=str))
        # Set by transformers only when it saves.
        raw["architectures"] = [type(source).__name__]
    return raw if whole else _normal(raw)


def _normal(raw: dict[str, Any]) -> dict[str, Any]:
    result = {key: value for key, value in raw.items() if key not in _NOT_THE_MODEL}
    if "torch_dtype" in result:  # the name before transformers 4.56
        result.setdefault("dtype", result.pop("torch_dtype"))
    return result


def changes(before: dict[str, Any] | None, after: dict[str, Any] | None) -> list[str]:
    """Return one phrase for each key that differs, such as ``"hidden_size 32 -> 64"``.

    Examples
    --------
    >>> changes({"layers": 2, "heads": 4}, {"layers": 3, "heads": 4})
    ['layers 2 -> 3']
    """
    if before is None or after is None:
        return [] if before is after else ["config.json is not in every checkpoint"]
    phrases = []
    for key in sorted(before.keys() | after.keys()):
        old = before.get(key, _MISSING)
        new = after.get(key, _MISSING)
        if old != new:
            phrases.append(f"{plain(key)} {_show(old)} -> {_show(new)}")
    return phrases


def other_model(
    before: dict[str, Any] | None, after: dict[str, Any] | None
) -> list[str]:
    """Return those of the `changes` that make another model, beside the stored dtype.

    Not what texts are generated with or only a training uses, nor a token for padding where there
    was none, nor what another version of transformers writes otherwise (``rope_parameters``).

    Examples
    --------
    >>> other_model({"eos_token_id": 2, "layers": 2}, {"eos_token_id": 3, "layers": 2})
    []
    >>> other_model({"problem_type": None, "resid_pdrop": 0.1}, {"resid_pdrop": 0.0})
    []
    >>> other_model({"pad_token_id": None}, {"pad_token_id": 0})
    []
    >>> other_model({"pad_token_id": 1}, {"pad_token_id": 0})
    ['pad_token_id 1 -> 0']
    """
    if before is None or after is None:
        return changes(before, after)
    ignored = {"dtype", *_OF_GENERATION}
    if None in (before.get("pad_token_id"), after.get("pad_token_id")):
        ignored.add("pad_token_id")

    def differing(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
        settings = [
            {
                k: v
                for k, v in config.items()
                if k not in ignored and not _OF_TRAINING.fullmatch(k)
            }
            for config in (first, second)
        ]
        return changes(*settings)

    # Compared as this transformers understands them only where they differ: that takes an import.
    return differing(before, after) and differing(
        _understood(before), _understood(after)
    )


def _understood(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as its class in transformers writes it, with all defaults."""
    from transformers import CONFIG_MAPPING

    kind = raw.get("model_type")
    if kind not in CONFIG_MAPPING:
        return raw
    try:
        made = CONFIG_MAPPING[kind].from_dict(
            {k: v for k, v in raw.items() if v is not None}
        )
    except Exception:
        # A class refuses values in its own way; then they are compared as they are.
        return raw
    written = json.loads(json.dumps(made.to_dict(), default=str))
    return _normal({**written, "architectures": raw.get("architectures")})


def _show(value: object) -> str:
    return "(absent)" if value is _MISSING else json.dumps(value)
