"""What an adapter's folder says of it: the file that peft calls ``adapter_config.json``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from ...errors import CheckpointError
from ..weights.digests import combine, tensor_digests
from ..weights.files import WeightFiles
from ..weights.inert import few, plain
from ..weights.states import json_table

SETTINGS = "adapter_config.json"
FILES = ("adapter_model.safetensors", "adapter_model.bin")
_WRAPPERS = re.compile(
    r"\.(?:base_layer|original_module|modules_to_save|token_adapter)(?=\.)"
)
_OF_TASK = {
    "CAUSAL_LM": "AutoModelForCausalLM",
    "SEQ_CLS": "AutoModelForSequenceClassification",
    "TOKEN_CLS": "AutoModelForTokenClassification",
    "SEQ_2_SEQ_LM": "AutoModelForSeq2SeqLM",
    "QUESTION_ANS": "AutoModelForQuestionAnswering",
    "FEATURE_EXTRACTION": "AutoModel",
}
_NOT_THE_ADAPTER = {
    "inference_mode",
    "peft_version",
    "base_model_name_or_path",
    "auto_mapping",
}
# Kinds that peft merges into weights, without another model, a text or a router beside them.
_KINDS = (
    *(
        "LORA",
        "ADALORA",
        "LOHA",
        "LOKR",
        "OFT",
        "BOFT",
        "HRA",
        "IA3",
        "VERA",
        "FOURIERFT",
    ),
    *(
        "LN_TUNING",
        "TRAINABLE_TOKENS",
        "VBLORA",
        "RANDLORA",
        "C3A",
        "DELORA",
        "ROAD",
        "SHIRA",
    ),
    *("WAVEFT", "BONE", "MISS", "GRALORA"),
)
_MERGE = (
    "merge it where it was trained: model.merge_and_unload().save_pretrained(FOLDER)"
)
# Settings by which an adapter is no change of weights, or peft needs more than its folder.
_REFUSED = {
    "alora_invocation_tokens": "acts from some tokens of a text on (activated LoRA)",
    "arrow_config": "is chosen among others by the text (Arrow)",
    "layer_replication": f"repeats layers of its base, which peft merges wrongly; {_MERGE}",
    "megatron_config": "names a library to import (megatron_config), which is not done",
}
_CONVERT = "save it with path_initial_model_for_weight_conversion"
_STARTS = {
    "pissa_niter": f"began at random numbers that are not in its folder; {_CONVERT}, or {_MERGE}",
    "corda": f"began at statistics of texts that are not in its folder; {_CONVERT}, or {_MERGE}",
    "loftq": f"began at a quantised base that is not in its folder; {_MERGE}",
    "lora_ga": f"began at gradients that are not in its folder; {_MERGE}",
}


@dataclass(frozen=True)
class AdapterSettings:
    """What the settings of an adapter say to others than peft."""

    folder: Path
    table: dict[str, Any]

    @property
    def base(self) -> str:
        """Return the folder or repository of the base; empty where none is named."""
        return str(self.table.get("base_model_name_or_path") or "")

    @property
    def revision(self) -> str:
        """Return the revision of the base that was tuned."""
        return str(self.table.get("revision") or "main")

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
        place = self.place()
        if not place.files[0].is_file():
            raise CheckpointError(
                f"{self.folder} holds no weights; looked for {few(FILES)}."
            )
        return place

    def place(self) -> WeightFiles:
        """Return where the adapter's tensors are, or were before they were deleted."""
        paths = [self.folder / name for name in FILES]
        path = next(filter(Path.is_file, paths), paths[0])
        return WeightFiles((path,), path.suffix == ".bin")

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the adapter's tensors, by the names that a model has for them."""
        with self.files().open() as reader:
            return {own_name(name): reader.shape(name) for name in reader.names()}

    def digest(self) -> str:
        """Return a digest of all that is put on the base: tensors, settings and peft's version."""
        settings = {
            key: json.dumps(value, sort_keys=True) for key, value in self.table.items()
        }
        return combine({**settings, "peft": _version(), **tensor_digests(self.files())})


def said_of_itself(folder: Path) -> dict[str, Any]:
    """Return the settings by which adapters differ; empty where there are none to read.

    Lists of names are in one order: peft saves sets, each time in another.
    """
    return {
        key: sorted(value, key=str) if isinstance(value, list) else value
        for key, value in json_table(folder / SETTINGS).items()
        if key not in _NOT_THE_ADAPTER
    }


def own_name(name: str) -> str:
    """Return the name that a model has for what peft saved under another, where it has one.

    Examples
    --------
    >>> own_name("base_model.model.lm_head.base_layer.weight")
    'lm_head.weight'
    """
    return _WRAPPERS.sub("", name.removeprefix("base_model.model."))


def read_settings(folder: Path) -> AdapterSettings:
    """Return the settings of the adapter in a folder.

    Raises
    ------
    CheckpointError
        If they cannot be read, or no weights of a model are equal to base and adapter.
    """
    path = folder / SETTINGS
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}.") from None
    if not isinstance(table, dict):
        raise CheckpointError(f"{path} must hold a JSON object.")
    kind = table.get("peft_type")
    if kind not in _KINDS:
        raise CheckpointError(
            f"{folder} holds an adapter of the kind {plain(kind)}, which is not known to "
            "merge into the weights of its base (prompts and routers never do)."
        )
    start = str(table.get("init_lora_weights")).lower()
    reasons = [why for key, why in _REFUSED.items() if table.get(key)]
    reasons += [why for begin, why in _STARTS.items() if start.startswith(begin)]
    if reasons:
        raise CheckpointError(
            f"{folder} is no model with weights of its own: it {reasons[0]}."
        )
    return AdapterSettings(folder, table)


def _version() -> str:
    try:
        return version("peft")
    except PackageNotFoundError:
        return ""
