"""Checkpoints that are recognised and cannot be read, each with what helps."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from ...errors import CheckpointError

_NEOX = "layer files of GPT-NeoX; convert with its tools/ckpts/convert_neox_to_hf.py --input_dir"
_BRIDGE = (
    "files of Megatron; export with Megatron Bridge, AutoBridge.from_hf_pretrained(MODEL)"
    ".export_ckpt"
)
_OF_TRANSFORMERS = (
    "weights of {}, which transformers 4 converts: pip install 'transformers<5' {}; python -c "
    '"from transformers import AutoModelForCausalLM as M; '
    'M.from_pretrained({{1!r}}, from_{}=True).save_pretrained({{1!r}})"'
)
_HDF5 = (
    'weights of Keras; convert each, with pip install h5py: python -c "import h5py, torch; w = {{}}; '
    "h5py.File({2!r}).visititems(lambda n, o: w.update({{n.replace('/', '.'): "
    "torch.tensor(o[()])}}) if hasattr(o, 'shape') and 'optimizer' not in n else None); "
    'torch.save(w, {3!r})"'
)
_MSGPACK = (
    'weights of Flax; convert each, with pip install flax: python -c "import numpy, torch; from '
    "flax import serialization as s, traverse_util as t; w = t.flatten_dict("
    "s.msgpack_restore(open({2!r}, 'rb').read()), sep='.'); torch.save({{n: torch.tensor("
    'numpy.asarray(v)) for n, v in w.items()}}, {3!r})"'
)
_ORBAX = (
    "arrays of JAX; convert each step's folder, with pip install orbax-checkpoint flax: python -c "
    '"import numpy, torch, orbax.checkpoint as o; from flax import traverse_util as t; w = '
    "t.flatten_dict(o.PyTreeCheckpointer().restore({1!r}), sep='.'); torch.save({{n: torch.tensor("
    "numpy.asarray(v)) for n, v in w.items()}}, {1!r} + '.pt')\""
)
_LLAMA = "transformers' convert_llama_weights_to_hf"
_OF_NAMES = (  # of files in a folder, or one below
    (
        r"layer_\d+-model_\d+-model_states\.pt",
        _NEOX + " {0} --config_file CONFIG.yml --output_dir OUT",
    ),
    (
        r"(?:model_optim_rng|model_rng|distrib_optim)\.pt|common\.pt",
        _BRIDGE + "({0!r}, 'OUT')",
    ),
    (
        r"pytorch_model_fsdp(?:_\d+)?_rank\d+\.bin",
        (
            "what each process of FSDP holds, without how it belongs together; train with "
            "fsdp_state_dict_type SHARDED_STATE_DICT or FULL_STATE_DICT"
        ),
    ),
    (
        r"model_world_size_\d+_rank_\d+\.pt",
        (
            "what each process of verl holds; join it with python -m verl.model_merger merge "
            "--backend fsdp --local_dir FOLDER --target_dir OUT"
        ),
    ),
    (r"flax_model\.msgpack", _OF_TRANSFORMERS.format("Flax", "flax", "flax")),
    (r"tf_model\.h5", _OF_TRANSFORMERS.format("TensorFlow", "tf-keras", "tf")),
    (r".+\.msgpack", _MSGPACK),
    (r".+\.(?:h5|hdf5)", _HDF5),
    (
        r".+\.keras",
        "archives of Keras; convert what each holds: unzip {2} model.weights.h5 -d {2}.d",
    ),
    (
        r"model_\d{8}\.bin",
        "weights of llm.c; convert each with its dev/eval/export_hf.py",
    ),
    (
        r"checkpoint_metadata\.json",
        "files of nanotron; convert with its convert_nanotron_to_hf.py",
    ),
    (r"manifest\.ocdbt|_CHECKPOINT_METADATA", _ORBAX),
    (
        r".+\.nemo",
        "archives of NeMo; unpack with tar -xf, or use convert_MODEL_nemo_to_hf.py",
    ),
    (r"consolidated\.\d\d\.pth", f"pieces of Meta's Llama; join them with {_LLAMA}"),
    (
        r"(?:optimizer|scheduler)\.(?:pt|bin)",
        "the state of an optimiser, and no weights",
    ),
    (
        r"(?!meta\.|random_state).+\.(?:npz|pkl)",
        "arrays or pickles; save them by name, as .pt with torch.save",
    ),
)
_BEFORE = "give the checkpoints before quantisation"
_OF_TENSORS = (
    (
        re.compile(r"\.(?:quant_state\.bitsandbytes__\w+|SCB|weight\.absmax)$"),
        "weights that bitsandbytes packed; load it with transformers and save "
        "model.dequantize(), or " + _BEFORE,
    ),
    (re.compile(r"\.g_idx$"), f"weights quantised by GPTQ; {_BEFORE}"),
    (re.compile(r"\.qweight$"), f"weights quantised by AWQ or GPTQ; {_BEFORE}"),
    (
        re.compile(r"\.weight_(?:packed|scale_inv|scale)$"),
        f"quantised weights; {_BEFORE}",
    ),
)
_POINTER = b"version https://git-lfs.github.com/spec/"


def unreadable(place: Path) -> str | None:
    """Return what a folder or a file is recognised as that cannot be read, and what helps."""
    paths = [place]
    if place.is_dir():
        inner = [path for path in sorted(place.iterdir()) if path.is_dir()]
        folders = (place, *inner[:5])
        paths = list(chain(*(sorted(folder.iterdir()) for folder in folders)))
    for pattern, what in _OF_NAMES:
        for path in paths:
            if re.fullmatch(pattern, path.name):
                parts = place, path.parent, path, path.with_suffix(".pt")
                return f"holds {what.format(*map(str, parts))}"
    return None


def check_readable(label: object, reader: Any) -> None:
    """Refuse tensors that are packed, quantised or, as ZeRO-3 may leave them, empty.

    Raises
    ------
    CheckpointError
        With what helps.
    """
    names = reader.names()
    for pattern, what in _OF_TENSORS:
        if any(map(pattern.search, names)):
            raise CheckpointError(f"{label} holds {what}.")
    halves = [name for name in names if re.search(r"\.lora_[ab](?:\.weight)?$", name)]
    if 2 * len(halves) > len(names):
        raise CheckpointError(
            f"{label} holds adapters of MLX or torchtune, without the adapter_config.json of MLX "
            "beside them; merge them: of MLX, mlx_lm.fuse --model BASE --adapter-path FOLDER."
        )
    matrices = [name for name in names if len(reader.shape(name)) == 2]
    whole = [
        name for name in matrices if reader.dtype(name) in (torch.int8, torch.uint8)
    ]
    if 2 * len(whole) > len(matrices):
        raise CheckpointError(
            f"{label} holds {len(whole)} of {len(matrices)} matrices as whole numbers of eight "
            f"bits, without what scales them; {_BEFORE}."
        )
    empty = [name for name in names if 0 in reader.shape(name)]
    if 2 * len(empty) > len(names):
        raise CheckpointError(
            f"{label} holds {len(empty)} empty tensors of {len(names)}, as ZeRO-3 saves them; run "
            "its zero_to_fp32.py, or train with stage3_gather_16bit_weights_on_model_save."
        )


def pointer(path: Path) -> str | None:
    """Return that a file is the pointer of Git LFS and how to fetch it, or None."""
    try:
        with path.open("rb") as file:
            is_pointer = file.read(len(_POINTER)) == _POINTER
    except OSError:
        return None
    what = f"is a pointer of Git LFS, not the file; fetch it: git -C {path.parent} lfs pull"
    return what if is_pointer else None
