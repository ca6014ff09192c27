"""Dictionaries as others store them: SAELens' folders, Gemma Scope, and plain arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...errors import ArgumentError, suggestion
from ...trajectory.hub.client import hub_errors
from ...trajectory.hub.repository import is_repository
from .brought import read_arrays
from .encoding import Encoding

CONFIG = "cfg.json"
WEIGHTS = "sae_weights.safetensors"
PARAMETERS = "params.npz"
ARCHITECTURES = ("standard", "topk", "jumprelu", "gated")
NORMALIZED = ("none", "expected_average_only_in", "constant_norm_rescale", "layer_norm")
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
_NEEDED = {
    "standard": ("b_enc",),
    "topk": ("b_enc",),
    "jumprelu": ("b_enc", "threshold"),
    "gated": ("b_gate", "b_mag", "r_mag"),
}
# Entries of cfg.json that change what a dictionary gives, and are read.
_READ = (
    *("architecture", "d_in", "d_sae", "dtype", "apply_b_dec_to_input"),
    *("normalize_activations", "reshape_activations", "k", "metadata"),
    *("rescale_acts_by_decoder_norm", "activation_fn", "activation_fn_str"),
    *("activation_fn_kwargs", "hook_name", "hook_point", "finetuning_scaling_factor"),
    "model_from_pretrained_kwargs",
)
# Entries that say where it comes from and change nothing.
_TOLD = (
    *("device", "model_name", "model_class_name", "hook_layer", "hook_head_index"),
    *("hook_point_layer", "hook_point_head_index", "context_size", "dataset_path"),
    *("prepend_bos", "dataset_trust_remote_code", "sae_lens_version"),
    *("sae_lens_training_version", "neuronpedia_id", "seqpos_slice", "release"),
    *("exclude_special_tokens", "training_tokens", "sae_id", "hf_hook_name"),
    *("from_pretrained_path", "use_ghost_grads", "l1_coefficient", "lp_norm", "lr"),
)


def read_dictionary(source: str) -> Encoding:
    """Return the dictionary of a folder, a file, or a repository of the Hub.

    Parameters
    ----------
    source
        A folder of SAELens (``cfg.json``, ``sae_weights.safetensors``) or of Gemma Scope
        (``params.npz``), a file ``.npz`` or ``.safetensors`` with ``W_enc``, ``b_enc``, ``W_dec``,
        ``b_dec`` and perhaps ``threshold``, or ``OWNER/NAME[/FOLDER]``.

    Raises
    ------
    ArgumentError
        If it is none of these, or ``cfg.json`` asks for what is not known here.
    """
    path = Path(source).expanduser()
    if not path.exists():
        path = _fetched(source)
    stamp = max((f.stat().st_mtime_ns for f in _files(path)), default=0)
    return _read(path, stamp)


def _files(path: Path) -> list[Path]:
    names = (CONFIG, WEIGHTS, PARAMETERS)
    return (
        [path] if path.is_file() else [path / n for n in names if (path / n).exists()]
    )


@lru_cache(maxsize=2)  # an observable is made, checked and sent to workers
def _read(path: Path, stamp: int) -> Encoding:
    if path.is_file():
        return _plain(read_arrays(path), str(path))
    if (path / PARAMETERS).exists():
        return _plain(read_arrays(path / PARAMETERS), str(path / PARAMETERS))
    missing = [name for name in (CONFIG, WEIGHTS) if not (path / name).exists()]
    if missing:
        raise ArgumentError(
            f"{str(path)!r} is no dictionary: it has no {' and no '.join(missing)}, and no "
            f"{PARAMETERS}. A folder in it may have them."
        )
    try:
        config = json.loads((path / CONFIG).read_text("utf-8"))
    except ValueError as error:
        raise ArgumentError(f"{str(path / CONFIG)!r} is no JSON: {error}.") from None
    return configured(config, _tensors(path / WEIGHTS), str(path / CONFIG))


def _tensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except Exception as error:  # of a damaged file, whatever the library raises
        raise ArgumentError(f"{str(path)!r} holds no weights: {error}") from None


def _plain(arrays: Mapping[str, Any], where: str) -> Encoding:
    """Return the dictionary of plain arrays; with a threshold it is a JumpReLU."""
    found = {
        f"W_{name[2:]}" if name.startswith("w_") else name: torch.as_tensor(
            value
        ).float()
        for name, value in arrays.items()
    }
    scale = found.pop("scaling_factor", torch.ones(1))
    if not (scale == 1).all():
        raise ArgumentError(
            f"scaling_factor of {where!r} must be 1; got other numbers."
        )
    architecture = "jumprelu" if "threshold" in found else "standard"
    # Gemma Scope's encoders take activations as they are.
    return Encoding(
        _checked(found, architecture, where), architecture, input_bias=False
    )


def configured(
    config: Mapping[str, Any], weights: Mapping[str, Tensor], where: str = CONFIG
) -> Encoding:
    """Return the dictionary that a ``cfg.json`` of SAELens describes.

    Raises
    ------
    ArgumentError
        If an entry is unknown, or asks for what is not known here.
    """
    told = dict(config.get("metadata") or {})
    whole = {**told, **config}
    unknown = sorted(set(config) - {*_READ, *_TOLD})
    if unknown:
        near = suggestion(unknown[0], _READ)
        raise ArgumentError(
            f"{where} has an entry {unknown[0]!r} that is not known here, and might change the "
            f"codes.{near} Fold it into the weights, or save these as W_enc, b_enc, W_dec, b_dec."
        )
    architecture, k = _architecture(whole, where)
    normalize = whole.get("normalize_activations") or "none"
    if isinstance(normalize, bool):
        normalize = "expected_average_only_in"
    _one_of(where, "normalize_activations", normalize, NORMALIZED)
    reshape = whole.get("reshape_activations") or "none"
    _one_of(where, "reshape_activations", reshape, ("none", "hook_z"))
    dtype = str(whole.get("dtype", "float32")).removeprefix("torch.")
    _one_of(where, "dtype", dtype, DTYPES)
    if whole.get("finetuning_scaling_factor"):
        raise ArgumentError(
            f"{where}: finetuning_scaling_factor must be false; got true."
        )
    cast = {name: tensor.to(DTYPES[dtype]) for name, tensor in weights.items()}
    return Encoding(
        _checked(cast, architecture, where),
        architecture,
        k,
        bool(whole.get("rescale_acts_by_decoder_norm", False)),
        bool(whole.get("apply_b_dec_to_input", True)),
        # What is an average of other texts is folded into the weights when SAELens saves them.
        "none" if normalize == "expected_average_only_in" else normalize,
        _centred(whole.get("model_from_pretrained_kwargs") or {}, where),
        str(whole.get("hook_name") or whole.get("hook_point") or ""),
    )


def _architecture(config: Mapping[str, Any], where: str) -> tuple[str, int]:
    """Return the architecture, and how many latents fire at most."""
    architecture = str(config.get("architecture", "standard"))
    function = config.get("activation_fn_str") or config.get("activation_fn") or "relu"
    k = config.get("k") or (config.get("activation_fn_kwargs") or {}).get("k") or 0
    if function == "topk" and architecture == "standard":
        architecture = "topk"
    _one_of(where, "architecture", architecture, ARCHITECTURES)
    allowed = ("relu", "topk") if architecture == "topk" else ("relu",)
    _one_of(where, "activation_fn", function, allowed)
    if architecture == "topk" and (not isinstance(k, int) or k < 1):
        raise ArgumentError(
            f"{where}: k must be a whole number of at least 1; got {k!r}."
        )
    return architecture, int(k)


def _centred(options: Mapping[str, Any], where: str) -> bool:
    """Return whether weights that write into the stream were centred when it was trained."""
    others = [
        name for name, on in options.items() if on and name != "center_writing_weights"
    ]
    if others:
        raise ArgumentError(
            f"{where}: it was trained on a model that was changed by {others[0]!r}, which cannot "
            "be done here."
        )
    return bool(options.get("center_writing_weights"))


def _one_of(where: str, name: str, given: Any, allowed: Any) -> None:
    if given not in allowed:
        raise ArgumentError(
            f"{where}: {name} must be one of {', '.join(map(repr, allowed))}; got {given!r}."
        )


def _checked(
    weights: Mapping[str, Tensor], architecture: str, where: str
) -> dict[str, Tensor]:
    """Return the weights that an architecture has, with shapes that fit each other."""
    names = ("W_enc", "W_dec", "b_dec", *_NEEDED[architecture])
    missing = [name for name in names if name not in weights]
    if missing:
        raise ArgumentError(
            f"{where}: a dictionary of kind {architecture!r} has {', '.join(names)}; "
            f"{missing[0]} is missing."
        )
    m, r = weights["W_enc"].shape if weights["W_enc"].ndim == 2 else (0, 0)
    shapes = {"W_enc": (m, r), "W_dec": (r, m), "b_dec": (m,)}
    for name in names:
        wanted = shapes.get(name, (r,))
        given = tuple(weights[name].shape)
        if given != wanted or 0 in wanted:
            raise ArgumentError(
                f"{where}: {name} must have shape {wanted} beside W_enc "
                f"{tuple(weights['W_enc'].shape)}; got {given}."
            )
        if not torch.isfinite(weights[name]).all():
            raise ArgumentError(
                f"{where}: {name} must be finite; it holds NaN or infinity."
            )
    return {name: weights[name].detach() for name in names}


@lru_cache(maxsize=16)  # an observable asks for its dictionary at every layer
def _fetched(source: str) -> Path:
    """Return where the folder of a repository of the Hub lies."""
    parts = source.split("/")
    repo = "/".join(parts[:2])
    if len(parts) < 2 or not is_repository(repo):
        raise ArgumentError(
            f"there is no folder or file {source!r}; a repository of the Hub is OWNER/NAME or "
            "OWNER/NAME/FOLDER."
        )
    from huggingface_hub import snapshot_download

    folder = "/".join(parts[2:])
    names = [f"{folder}/{n}".lstrip("/") for n in (CONFIG, WEIGHTS, PARAMETERS)]
    with hub_errors(
        f"there is no folder {source!r}, and the repository {repo}", ArgumentError
    ):
        return Path(snapshot_download(repo, allow_patterns=names)) / folder
