"""Pickles read without running them: tensors and numbers come out, everything else is inert.

Training loops save configurations and states beside the weights: dataclasses, omegaconf objects,
NumPy scalars, whole modules. What a pickle calls is looked up here and nowhere else. Names that
rebuild tensors and numbers lead to functions of this file; any other name leads to an `Inert`
class that is made for this one file. No class is imported, and no ``__reduce__`` is followed.
"""

from __future__ import annotations

import pickle
import tarfile
import warnings
import zipfile
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ...characters import escaped

_FEW = 5  # names that a message lists
_NUMBER = frozenset("biufc?")  # kinds of NumPy's dtypes whose values are plain bytes


class Inert(dict):
    """What stands for an object of a class that is not read: entries and state, no behaviour.

    It is a dict, since subclasses of dict hold state dicts. Whatever is called gives another one.
    ``__setstate__`` is also what a pickle finds on the class, where it must change nothing.
    """

    origin: ClassVar[str] = ""
    state: Any = None
    # Torch asks for it: a patch file is never written.
    dump_patches: ClassVar[bool] = False

    def __new__(cls, *_: Any, **__: Any) -> Inert:
        """Return an empty one; arguments are dropped."""
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        self.__dict__["state"] = None

    def __setstate__(*arguments: Any) -> None:
        if len(arguments) == 2:
            arguments[0].__dict__["state"] = arguments[1]

    def __call__(self, *_: Any, **__: Any) -> Inert:
        """Return an empty one."""
        return Inert()

    def append(self, *_: Any) -> None:
        """Drop what a list would hold."""

    extend = add = append

    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__


class _Function:
    """A function of this file under a name that a pickle gives; it takes no state."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


class _Bytes:
    """Stands for the class of untyped storages, of which torch asks the dtype."""

    __slots__ = ()
    dtype = torch.uint8


class _Dtype(Inert):
    """A NumPy dtype: its code, and its byte order in the state."""

    def __init__(self, code: Any = "", *_: Any) -> None:
        super().__init__()
        self.code = code


def _scalar(dtype: Any, data: Any = b"") -> Any:
    """Return a NumPy scalar as a number of Python; what is no number stays inert."""
    code = getattr(dtype, "code", "")
    if not (isinstance(code, str) and code[:1] in _NUMBER and isinstance(data, bytes)):
        return Inert()
    state = dtype.state
    order: Any = (
        state[1] if isinstance(state, tuple) and state[1:2] in (("<",), (">",)) else "="
    )
    return np.frombuffer(data, np.dtype(code).newbyteorder(order), 1)[0].item()


def _tensor(storage: Any, offset: int, size: Any, stride: Any, *_: Any) -> Tensor:
    # As torch rebuilds it: the public names of typed storages warn.
    empty = torch.empty(0, dtype=storage.dtype)
    return empty.set_(storage._untyped_storage, offset, tuple(size), tuple(stride))


_NUMPY = ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    # Not the factory that the pickle names.
    ("collections", "defaultdict"): lambda *_: defaultdict(Inert),
    ("_codecs", "encode"): lambda text, encoding: text.encode("latin1"),
    ("torch", "Size"): torch.Size,
    ("torch", "device"): torch.device,
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
    ("torch._utils", "_rebuild_parameter_with_state"): lambda data, *_: data,
    ("torch._tensor", "_rebuild_from_type_v2"): lambda call, kind, arguments, *_: call(
        *arguments
    ),
    **{(module, "scalar"): _scalar for module in _NUMPY},
    **{
        (module, kind.__name__): kind
        for module in ("builtins", "__builtin__")
        for kind in (set, frozenset, list, tuple, dict, complex)
    },
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return what a name stands for; nothing is imported."""
        function = _KNOWN.get((module, name))
        if function is not None:
            return _Function(function)
        dtype = vars(torch).get(name) if module == "torch" else None
        if isinstance(dtype, torch.dtype):
            return dtype
        if name == "UntypedStorage":
            return _Bytes()
        of_numpy = (module, name) == ("numpy", "dtype") or module == "numpy.dtypes"
        return type(
            "Inert",
            (_Dtype if of_numpy else Inert,),
            {"origin": plain(f"{module}.{name}")},
        )


def _load(file: Any, **options: Any) -> Any:
    return _Unpickler(file, **options).load()


_MODULE = SimpleNamespace(__name__="inert", Unpickler=_Unpickler, load=_load)


def read_inert(path: Path, is_zip: bool) -> Any:
    """Return what a file of ``torch.save`` holds, in the zip form and in the one before it.

    Tensors and plain containers are themselves, NumPy scalars are numbers, and the rest is
    `Inert`. Nothing that the file names is imported or called.

    Raises
    ------
    Exception
        Whatever damaged pickles raise; ValueError for TorchScript and tar archives.
    """
    if is_zip:
        with zipfile.ZipFile(path) as archive:
            if any(Path(name).name == "constants.pkl" for name in archive.namelist()):
                raise ValueError("it is a TorchScript archive, which holds a program")
    elif tarfile.is_tarfile(path):
        raise ValueError("it is a tar archive, as torch wrote them before 2017")
    # That a module's code is not the file's.
    with warnings.catch_warnings(action="ignore"):
        return torch.load(
            path,
            map_location="cpu",
            weights_only=False,
            mmap=is_zip,
            pickle_module=_MODULE,
        )


def read_plain(path: Path) -> Any:
    """Return what a pickle without tensors holds, read as `read_inert` does.

    Raises
    ------
    Exception
        Whatever damaged pickles raise.
    """
    with path.open("rb") as file:
        return _Unpickler(file).load()


def module_tensors(module: Inert, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield parameters and stored buffers of a pickled module by their names in a state dict."""
    state = module.state
    if not isinstance(state, Mapping):
        return
    passing = state.get("_non_persistent_buffers_set") or ()
    for group in ("_parameters", "_buffers"):
        for name, value in _entries(state.get(group)):
            if isinstance(value, Tensor) and not (
                group == "_buffers" and name in passing
            ):
                yield f"{prefix}{name}", value
    for name, part in _entries(state.get("_modules")):
        if isinstance(part, Inert):
            yield from module_tensors(part, f"{prefix}{name}.")


def _entries(mapping: Any) -> Any:
    return mapping.items() if isinstance(mapping, Mapping) else ()


def plain(text: object, width: int = 120) -> str:
    r"""Return a text of a file on one line, without what a terminal would obey.

    Examples
    --------
    >>> plain("a\x1b[1mb\nc")
    'a\\x1b[1mb\\nc'
    """
    return "".join(map(escaped, str(text)[:width]))


def few(texts: Collection[object]) -> str:
    """Return at most five of the texts of a file, and how many there are.

    Examples
    --------
    >>> few(["a", "b"]), few(range(7))
    ('a, b', '0, 1, 2, 3, 4 (5 of 7)')
    """
    names = ", ".join(plain(text) for text in list(texts)[:_FEW])
    return names if len(texts) <= _FEW else f"{names} ({_FEW} of {len(texts):,})"
