"""What a change to the library changes: thirteen studies, made by both versions, value by value.

    python benchmarks/unchanged.py runs FOLDER           # trained once, for both versions
    python benchmarks/unchanged.py studies FOLDER OUT    # by the version that is installed
    python benchmarks/unchanged.py compare OUT OTHER

The studies cover every preset, a tuning of all weights and one by LoRA, a comparison, one model,
masked words, characters, labels, ids without a tokenizer, and the quick demo;
`--names` chooses some. `compare` prints for each
study what differs: variables with their largest difference, those that only one version has, the
lines that a reader sees first, and the claims on rows and abilities. What is told of time, place
and version does not count.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import xarray as xr
from unchanged_runs import LENGTH, make_runs, texts

import ontogeny as og
from ontogeny.claims import Kind
from ontogeny.demo import run_demo
from ontogeny.words.page_claims import claims_of_result

SHORT = ["--yes", "--quiet", "--workers", "2", "--set", "inputs.max_texts=60"]
# Claims that follow from numbers that results of earlier versions hold as well.
COMPARED = (
    Kind.LEARNED,
    Kind.FORGOT,
    Kind.BEYOND_MOTION,
    Kind.CHANGED,
    Kind.BEFORE,
    Kind.ABOVE_CHANCE,
    Kind.GAINED,
    Kind.LOST,
    Kind.DAMAGED,
)
OF_TIME = {"created", "provenance", "version", "settings", "checksums", "problems"}


def _command(*arguments: object) -> None:
    words = [str(word) for word in arguments]
    done = subprocess.run(
        [sys.executable, "-m", "ontogeny", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(
            " ".join(words),
            "->",
            done.returncode,
            done.stdout[-2000:],
            done.stderr[-2000:],
        )


def _tokenizer_of(folder: Path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)


def _of_labels(runs: Path, out: Path) -> None:
    tokenizer = _tokenizer_of(runs / "causal")
    read = texts()[:120]
    labels = [int("class" in text or "def" in text) for text in read]
    inputs = og.Inputs.from_texts(read, tokenizer, max_length=LENGTH, labels=labels)
    observed = [og.observables.Loss(), og.observables.LabelAccuracy()]
    run = og.Trajectory.from_folder(runs / "causal")
    og.Study(run, inputs, observed, controls=2).run(out).report(out / "report.html")


def _demo(runs: Path, out: Path) -> None:
    run_demo(out, quick=True)


def studies(runs: Path) -> dict[str, list[object]]:
    """Return the arguments of `ontogeny study` for each study that is made by it."""
    base = runs / "causal" / "checkpoint-96"
    model = f"{runs / 'characters' / 'model.py'}:build"
    ids = runs / "characters" / "held-out.npy"
    return {
        "quick": [runs / "causal", "--preset", "quick"],
        "standard": [runs / "causal"],
        "weights": [runs / "causal", "--preset", "weights"],
        "circuits": [runs / "causal", "--preset", "circuits"],
        "everything": [runs / "masked", "--preset", "everything"],
        "masked": [runs / "masked"],
        "tuned": [runs / "tuned", "--base", base],
        "lora": [runs / "lora", "--base", base],
        "one-model": [base, "--tokenizer", runs / "causal"],
        "characters": [
            *(runs / "characters", "--model", model),
            *("--texts", ids, "--tokenizer", "none"),
        ],
        "comparison": [runs / "causal", runs / "causal-1", "--preset", "quick"],
    }


IN_PYTHON: dict[str, Callable[[Path, Path], None]] = {
    "labels": _of_labels,
    "demo": _demo,
}
NAMES = (*studies(Path()), *IN_PYTHON)


def make_studies(runs: Path, out: Path, names: Sequence[str]) -> None:
    """Make the studies that are not there yet."""
    out.mkdir(parents=True, exist_ok=True)
    commands = studies(runs)
    for name in names or NAMES:
        if (out / name).exists():
            continue
        if name in commands:
            _command("study", *commands[name], "--output", out / name, *SHORT)
        else:
            IN_PYTHON[name](runs, out / name)
        print("studied", name, flush=True)


def _results(folder: Path) -> dict[str, xr.DataTree]:
    found = sorted(folder.rglob("result.zarr"))
    return {
        str(path.parent.relative_to(folder)): xr.open_datatree(
            path, engine="zarr", chunks=None
        )
        for path in found
    }


def _difference(left: xr.DataArray, right: xr.DataArray) -> str:
    if left.dims != right.dims or left.shape != right.shape:
        return f"shape {dict(left.sizes)} | {dict(right.sizes)}"
    a = left.values
    b = right.values
    if a.dtype.kind in "fiu" and b.dtype.kind in "fiu":
        if np.array_equal(a, b, equal_nan=a.dtype.kind == "f" and b.dtype.kind == "f"):
            return ""
        nan = int((np.isnan(a.astype(float)) != np.isnan(b.astype(float))).sum())
        most = np.nanmax(np.abs(a.astype(float) - b.astype(float)), initial=0.0)
        return f"differs by {most:.3g}" + (
            f", {nan} of {a.size} are NaN in one" if nan else ""
        )
    if np.array_equal(a, b):
        return ""
    unlike = a.astype(str) != b.astype(str)
    if not unlike.any():
        return ""
    return f"{int(unlike.sum())} of {a.size}: {a[unlike][0]!r} | {b[unlike][0]!r}"


def differences(left: xr.DataTree, right: xr.DataTree) -> Iterator[str]:
    """Yield a line for each variable and attribute in which two results differ."""
    paths = sorted(
        {node.path for node in left.subtree} | {node.path for node in right.subtree}
    )
    for path in paths:
        if path not in [node.path for node in left.subtree]:
            yield f"{path}: only in the second"
            continue
        if path not in [node.path for node in right.subtree]:
            yield f"{path}: only in the first"
            continue
        a = left[path].to_dataset()
        b = right[path].to_dataset()
        for name in sorted(set(a.variables) | set(b.variables)):
            if name not in a.variables or name not in b.variables:
                which = "first" if name in a.variables else "second"
                yield f"{path}/{name}: only in the {which}"
                continue
            unlike = _difference(a[name], b[name])
            if unlike:
                yield f"{path}/{name}: {unlike}"
        for key in sorted((set(a.attrs) | set(b.attrs)) - OF_TIME):
            if json.dumps(a.attrs.get(key), default=str) != json.dumps(
                b.attrs.get(key), default=str
            ):
                yield f"{path}@{key}: {str(a.attrs.get(key))[:300]} | {str(b.attrs.get(key))[:300]}"


def claim_differences(left: xr.DataTree, right: xr.DataTree) -> Iterator[str]:
    """Yield a line for each claim on a row or ability that two results do not share.

    Those of a result without claims of its own are made of its numbers.
    """
    old = _claims(left)
    new = _claims(right)
    for key in sorted(old.keys() | new.keys()):
        if key not in new or key not in old:
            yield f"claim {key}: only in the {'first' if key in old else 'second'}"
        elif old[key] != new[key]:
            yield f"claim {key}: {old[key]} | {new[key]}"


def _claims(tree: xr.DataTree) -> dict[tuple[str, ...], tuple[str, str, str]]:
    """Return the certainty, reason and last value of each claim, by kind and subject."""
    told = [claim for claim in claims_of_result(tree) if claim.kind in COMPARED]
    return {
        (str(claim.kind), claim.subject.run, *claim.subject.key): (
            str(claim.certainty),
            str(claim.reason or ""),
            f"{claim.last:.6g}",
        )
        for claim in told
    }


def compare(first: Path, second: Path, names: Sequence[str]) -> bool:
    """Print what differs between the studies of two folders; return whether nothing does."""
    same = True
    for name in names or NAMES:
        left = _results(first / name)
        right = _results(second / name)
        print(f"== {name}: {len(left)} and {len(right)} results")
        same &= left.keys() == right.keys() and bool(left)
        for place in left.keys() & right.keys():
            for line in differences(left[place], right[place]):
                same = False
                print(f"{place} {line}")
            apart = list(claim_differences(left[place], right[place]))
            count = len(_claims(right[place]))
            print(f"{place} claims: {count - len(apart)} of {count} agree")
            for line in apart:
                print(f"{place} {line}")
    return same


def main() -> None:
    """Run one of the three parts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", choices=["runs", "studies", "compare"])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--names", nargs="*", default=[])
    given = parser.parse_args()
    if given.part == "runs":
        make_runs(given.folders[0])
    elif given.part == "studies":
        make_studies(given.folders[0], given.folders[1], given.names)
    else:
        same = compare(given.folders[0], given.folders[1], given.names)
        sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
