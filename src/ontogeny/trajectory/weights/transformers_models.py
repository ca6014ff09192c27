"""Model classes, loading and key conversion of transformers.

transformers is imported when the first function that needs it runs.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..._exports import load_entry
from ...errors import CheckpointError, suggestion
from .announced import announce
from .configuration import read_configuration
from .files import Reader
from .inert import few, plain
from .wrappers import without_wrapper

# from_pretrained sets the process-wide default dtype while it builds, and progress bars and the
# log level are process-wide as well.
_PROCESS_WIDE = threading.RLock()

_OWN_ATTENTION = ("sdpa", "eager")

# What helps where a model's class is not known: a function of the user's that builds a module.
PASS_MODEL = (
    'say how it is built: --model model.py:build for a command, model = "model.py:build" under '
    "[trajectory] of a study file, model=build in Python"
)

# Entry points of installed packages: a class by its name in the architectures of config.json.
GROUP = "ontogeny.models"


def is_pretrained(model: object) -> bool:
    """Return whether `model` is a transformers model, without importing transformers."""
    transformers = sys.modules.get("transformers")
    return transformers is not None and isinstance(model, transformers.PreTrainedModel)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and load report, one thread at a time."""
    from transformers.utils import logging as switches

    with _PROCESS_WIDE:
        level = switches.get_verbosity()
        bars = switches.is_progress_bar_enabled()
        switches.set_verbosity_error()
        switches.disable_progress_bar()
        try:
            yield
        finally:
            switches.set_verbosity(level)
            if bars:
                switches.enable_progress_bar()


def model_class(folder: Path) -> Any:
    """Return the class for the architecture that config.json names.

    It is transformers' own, or one that an installed package declares as an entry point.

    Raises
    ------
    CheckpointError
        If there is no such class; remote code is never run.
    """
    configuration = read_configuration(folder)
    _check_kernels(folder, read_configuration(folder, whole=True))
    if configuration is None:
        raise CheckpointError(
            f"{folder} has no config.json, so its model class is not known; {PASS_MODEL}."
        )
    names = configuration.get("architectures") or _usual_classes(
        configuration.get("model_type")
    )
    if not (isinstance(names, list) and names and isinstance(names[0], str)):
        raise CheckpointError(
            f"{folder / 'config.json'} names no architectures; {PASS_MODEL}."
        )
    try:
        return named_class(names[0])
    except CheckpointError:
        given = configuration.get("auto_map")
        of_kinds = given.items() if isinstance(given, Mapping) else ()
        code = {kind: str(name).split(".")[0] for kind, name in of_kinds}
        hub = next((part for part in folder.parts if part.startswith("models--")), "")
        made = [
            kind
            for kind, name in code.items()
            if hub or (folder / f"{name}.py").is_file()
        ]
        if len(made) < 2:  # beside AutoConfig
            raise
        # Of the Hub, code is not fetched.
        source = "/".join(hub.split("--")[1:]) or str(folder)
        usual = ("AutoModelForMaskedLM", "AutoModelForCausalLM")
        best = next((kind for kind in usual if kind in made), made[-1])
        raise CheckpointError(
            f"{source} needs code that comes with it, which is not run; where you trust it, let a "
            f"function of yours return transformers.{plain(best)}.from_pretrained("
            f"{source!r}, trust_remote_code=True), and {PASS_MODEL}."
        ) from None


def _usual_classes(kind: Any) -> list[str]:
    """Return the class that predicts masked tokens, or else the next one, of a kind of model."""
    from transformers.models.auto import modeling_auto as auto

    tables = (
        auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    )
    return [table[kind] for table in tables if isinstance(kind, str) and kind in table]


def named_class(name: str) -> Any:
    """Return the class of this name, of transformers or of an entry point.

    Raises
    ------
    CheckpointError
        If there is no such class.
    """
    import transformers

    cls = getattr(transformers, name, None) or _declared_class(name)
    if not (isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel)):
        raise CheckpointError(
            f"transformers has no model class {name!r}, no installed package declares it (entry "
            f"points {GROUP}), and code that comes with a checkpoint is not run; install the "
            f"package that has the class, or {PASS_MODEL}.{suggestion(name, dir(transformers))}"
        )
    return cls


def checked_configuration(folder: Path, cls: Any = None) -> Any:
    """Return the configuration in a folder, of this model class; it chooses no code.

    Raises
    ------
    CheckpointError
        If it asks for code, or transformers does not know it.
    """
    from transformers import AutoConfig

    _check_kernels(folder, read_configuration(folder, whole=True))
    kind = AutoConfig if cls is None else cls.config_class
    try:
        config = kind.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # whatever transformers raises
        raise CheckpointError(
            f"{folder / 'config.json'} cannot be read: {error}"
        ) from error
    if config._attn_implementation not in _OWN_ATTENTION:
        config._attn_implementation = None
    return config


def _declared_class(name: str) -> Any:
    """Return what an installed package declares under the name of a class, or None."""
    entry = next(iter(entry_points(group=GROUP, name=name)), None)
    return entry and load_entry("model class", entry, CheckpointError)


def _check_kernels(folder: Path, configuration: Any) -> None:
    """Refuse a configuration that asks for code of a repository to compute attention with."""
    if isinstance(configuration, dict):
        for key, value in configuration.items():
            if "_implementation" in key and "/" in json.dumps(value):
                raise CheckpointError(
                    f"{folder / 'config.json'} asks for remote code: {plain(key)} is "
                    f"{plain(value)}. Take that line out, or open the repository on the Hub with "
                    "trust_remote_code."
                )
            _check_kernels(folder, value)


def load_pretrained(
    folder: Path,
    reader: Reader,
    dtype: torch.dtype,
    like: nn.Module | None = None,
    stored_elsewhere: Collection[str] = (),
) -> nn.Module:
    """Return the model of `folder` on the CPU, after checking transformers' load report.

    Its weights are the tensors that the reader gave, wherever they have this dtype: those of
    safetensors files are mapped and are read when they are used, see `own_memory`.

    Parameters
    ----------
    folder
        A folder with config.json.
    reader
        The opened weights.
    dtype
        Floating-point dtype of the weights.
    like
        A module whose class and configuration are used instead of those that config.json names.
    stored_elsewhere
        Names of weights that may be missing or of another shape, as an adapter holds them.

    Raises
    ------
    CheckpointError
        If a weight is missing, newly initialised or of another shape, or nothing loads.
    """
    cls: Any = model_class(folder) if like is None else type(like)
    try:
        config: Any = (
            cls.config_class.from_pretrained(folder) if like is None else like.config
        )
        asked = config._attn_implementation
        kind = (
            asked if asked in _OWN_ATTENTION else _OWN_ATTENTION[not cls._supports_sdpa]
        )
        layers = getattr(config, "num_hidden_layers", 0)
        tensors = reader.names()
        # Building millions takes for ever.
        if isinstance(layers, int) and layers > len(tensors):
            raise ValueError(f"{layers:,} layers of {len(tensors):,} tensors")

        def load(names: Mapping[str, str]) -> Any:
            return cls.from_pretrained(
                None,
                config=config,
                attn_implementation=kind,  # else the checkpoint chooses, also kernels of the Hub
                state_dict={name: reader.get(stored) for name, stored in names.items()},
                dtype=dtype,
                ignore_mismatched_sizes=True,  # they are in the report, by name
                output_loading_info=True,
            )

        with quiet():
            module, report = load({name: name for name in tensors})
            if report["missing_keys"]:
                inside = without_wrapper(module.state_dict(), tensors, folder)
                if inside.keys() != set(tensors):
                    module, report = load(inside)
    except CheckpointError:
        raise
    except Exception as error:
        # Whatever transformers raises, it is this checkpoint that failed.
        raise CheckpointError(
            f"{folder} does not load as {cls.__name__}: {error}"
        ) from error
    _check_report(folder, cls.__name__, report, stored_elsewhere)
    return module


def _check_report(
    folder: Path, name: str, report: dict[str, Any], stored_elsewhere: Collection[str]
) -> None:
    kinds = {
        "missing_keys": "missing in the file and newly initialised",
        "mismatched_keys": "of another shape",
        "error_msgs": "not loaded",
    }
    problems = []
    for key, what in kinds.items():
        # Of another shape, entries are (name, shape, shape).
        entries = [
            (e if isinstance(e, str) else e[0], str(e)) for e in report.get(key) or ()
        ]
        texts = sorted(text for entry, text in entries if entry not in stored_elsewhere)
        problems += [f"{what}: {few(texts)}"] if texts else []
    if problems:
        raise CheckpointError(
            f"{folder} is not a whole {name}; weights {'; '.join(problems)}."
        )
    if report.get("unexpected_keys"):
        left_over = few(sorted(report["unexpected_keys"]))
        text = f"tensors that {name} does not use: {left_over}."
        announce(text, f"such files as those in {folder} hold {text}", folder)


def own_memory(module: nn.Module) -> nn.Module:
    """Return the module, with weights copied out of the mapped files, which may be written over.

    One after another: each map is given up before the next tensor is read.
    """
    for tensor in (*module.parameters(), *module.buffers()):
        tensor.data = tensor.data.clone()
    return module


def renamed_keys(module: Any, file_names: Iterable[str]) -> dict[str, str]:
    """Return ``{module name: file name}`` for file tensors that transformers renames at most.

    Tensors that it converts (splits, joins, transposes) have no single partner and are left out;
    so are two file names that end up as one module name.
    """
    partners: dict[str, list[str]] = {}
    for name, (target, is_converted) in file_targets(module, file_names).items():
        if not is_converted:
            partners.setdefault(target, []).append(name)
    return {target: names[0] for target, names in partners.items() if len(names) == 1}


def file_targets(module: Any, file_names: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """Return the module name that each file tensor goes to, and whether it is converted for it."""
    from transformers import conversion_mapping, core_model_loading

    transforms = conversion_mapping.get_model_conversion_mapping(module)
    converter = core_model_loading.WeightConverter
    renamings = [
        transform for transform in transforms if not isinstance(transform, converter)
    ]
    converters = [
        transform for transform in transforms if isinstance(transform, converter)
    ]
    state = module.state_dict()
    targets = {}
    for name in file_names:
        target, converted = core_model_loading.rename_source_key(
            name, renamings, converters, module.base_model_prefix, state
        )
        if target not in state and name in state:
            target = name
            converted = None
        targets[name] = (target, converted is not None)
    return targets
