"""What an adapter's folder says of it: the file that peft calls ``adapter_config.json``."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import CheckpointError
from ..weights.files import WeightFiles
from ..weights.inert import few, plain

SETTINGS = "adapter_config.json"
_FILES = ("adapter_model.safetensors", "adapter_model.bin")
_OF_TASK = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}
# They change the base's own weights when training begins: base + scale B A is another model.
_OTHER_STARTS = ("pissa", "olora", "corda", "loftq")
_MERGE = "merge it with peft: model.merge_and_unload().save_pretrained(FOLDER)"


@dataclass(frozen=True)
class AdapterSettings:
    """What is read of the settings of a LoRA adapter."""

    folder: Path
    table: dict[str, Any]

    @property
    def base(self) -> str:
        """Return the folder or repository of the base; empty where none is named."""
        return str(self.table.get("base_model_name_or_path") or "")

    @property
    def is_dora(self) -> bool:
        """Return whether the lengths of columns are learned apart."""
        return bool(self.table.get("use_dora"))

    def scale(self, module: str, rank: int) -> float:
        """Return what B A is multiplied by in a module: alpha / r, or alpha / sqrt(r) (rsLoRA)."""
        alpha = float(self.table.get("lora_alpha", rank))
        for pattern, value in (self.table.get("alpha_pattern") or {}).items():
            if re.match(rf"(.*\.)?({pattern})$", module):
                alpha = float(value)
                break
        return alpha / (math.sqrt(rank) if self.table.get("use_rslora") else rank)

    def class_name(self, config: Any) -> str | None:
        """Return the name of the class that was adapted, or None if only the base can tell."""
        import transformers

        task = _OF_TASK.get(str(self.table.get("task_type")))
        if task is None:
            model_class = (self.table.get("auto_mapping") or {}).get("base_model_class")
            return model_class if isinstance(model_class, str) else None
        classes = getattr(transformers, task)._model_mapping
        entry = classes.get(type(config), None)
        entry = entry[0] if isinstance(entry, (tuple, list)) else entry
        return None if entry is None else entry.__name__

    def files(self) -> WeightFiles:
        """Return the file with the adapter's tensors.

        Raises
        ------
        CheckpointError
            If there is none.
        """
        for name in _FILES:
            if (self.folder / name).is_file():
                return WeightFiles((self.folder / name,), name.endswith(".bin"))
        raise CheckpointError(f"{self.folder} holds no weights; looked for {few(_FILES)}.")


def read_settings(folder: Path) -> AdapterSettings:
    """Return the settings of the adapter in a folder.

    Raises
    ------
    CheckpointError
        If they cannot be read, or the adapter is of a kind that is no base + scale B A.
    """
    path = folder / SETTINGS
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}.") from None
    if not isinstance(table, dict):
        raise CheckpointError(f"{path} must hold a JSON object.")
    kind, start = table.get("peft_type"), str(table.get("init_lora_weights")).lower()
    if kind != "LORA":
        raise CheckpointError(
            f"{folder} holds an adapter of the kind {plain(kind)}; LoRA, rsLoRA and DoRA are read. "
            f"Else {_MERGE}."
        )
    others = [k for k in ("target_parameters", "layer_replication", "lora_bias") if table.get(k)]
    if others or start.startswith(_OTHER_STARTS):
        why = few(others) if others else f"init_lora_weights {plain(start)}"
        raise CheckpointError(f"{folder} is no base + scale B A, by its {why}; {_MERGE}.")
    return AdapterSettings(folder, table)
