#!/usr/bin/env python3
"""Write the stubs of modules whose names are loaded when they are first used.

    .ci/stubs.py          writes them
    .ci/stubs.py --check  fails where one is not as it would be written

Type checkers and editors see no name that a function gives at run time. So a stub beside each such
module says where its names are defined: those of its own imports, and those that features give.
"""

import argparse
import ast
import importlib
import sys
from pathlib import Path

import ontogeny
from ontogeny._exports import _given, features

ROOT = Path(ontogeny.__file__).parent
WIDTH = 100


def lazy_modules() -> list[str]:
    """Return the public modules that have a ``__getattr__``."""
    modules = (
        importlib.import_module(f"ontogeny.{name}") for name in ontogeny._MODULES
    )
    loaders = {module.__name__: vars(module).get("__getattr__") for module in modules}
    return [
        name
        for name, load in loaders.items()
        if load and load.__module__ == _given.__module__
    ]


def stub_of(module: str) -> str:
    """Return the stub of a module with lazy names."""
    value = importlib.import_module(module)
    tree = ast.parse(Path(value.__file__).read_text(encoding="utf-8"))
    homes = dict(_given(module.partition(".")[2], features()))
    own = getattr(value, "_ATTRIBUTES", {})
    homes |= {name: f".{home}" for name, home in own.items()}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module not in (
            "__future__",
            "_exports",
        ):
            names = [alias.name for alias in node.names if alias.name in value.__all__]
            homes |= dict.fromkeys(names, "." * node.level + (node.module or ""))
    ordered = sorted(homes.items(), key=lambda item: (item[1], item[0]))
    lines = [f"from {home} import {name} as {name}" for name, home in ordered]
    # Installed packages give further names, which nobody knows here.
    lines = ["from typing import Any", *lines]
    more = "\ndef __getattr__(name: str) -> Any: ...\n"
    return f"{_whole(lines, value.__all__)}{more}"


def stub_of_library() -> str:
    """Return the stub of ``ontogeny`` itself."""
    lines = ["from ._version import __version__ as __version__"]
    lines += [f"from . import {name} as {name}" for name in ontogeny._MODULES]
    lines += [
        f"from .{home} import {name} as {name}"
        for name, home in ontogeny._ATTRIBUTES.items()
    ]
    return _whole(lines, ontogeny.__all__)


def _whole(lines: list[str], names: list[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    listed = f"__all__ = [{', '.join(quoted)}]"
    if len(listed) > WIDTH:
        listed = "\n".join(["__all__ = [", *(f"    {name}," for name in quoted), "]"])
    imports = "".join(f"{line}\n" for line in lines)
    return f"# Written by .ci/stubs.py.\n# ruff: noqa\n{imports}\n{listed}\n"


def stubs() -> dict[Path, str]:
    """Return all stubs by their files."""
    written = {ROOT / "__init__.pyi": stub_of_library()}
    for module in lazy_modules():
        file = Path(importlib.import_module(module).__file__)
        written[file.with_suffix(".pyi")] = stub_of(module)
    return written


def main() -> None:
    """Write or check the stubs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for path, text in stubs().items():
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if there != text:
            stale.append(str(path))
            if not check:
                path.write_text(text, encoding="utf-8")
    if check and stale:
        sys.exit(f"{', '.join(stale)} are stale: run .ci/stubs.py.")


if __name__ == "__main__":
    main()
