"""What control runs say of runs of which it is known whether they learned, and what they cost.

    OMP_NUM_THREADS=1 python benchmarks/controls.py [SECTION ...] [--run FOLDER] [--keep FOLDER]

Sections, all by default:

- `heldout`: control runs that were left out are taken as the run, with three others as controls;
  they learned nothing, so no more than 5 % of pages may have a row "beyond", and none "learned".
- `real`: small trained runs, one for each seed, with three controls each.
- `planted`: random walks and noise with memory, with three controls each.
- `cost`: CPU time and peak memory of a study with one control at eight steps, over the same
  without; each in a process of its own, by turns. Bar: 1.4.

`--run` gives a recorded run to make the controls of `heldout` of, and to take the `cost` of; a
small one is trained without. `--keep` names a folder that work is kept in, to go on after a stop.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from ontogeny import Inputs, Study, Trajectory, demo
from ontogeny.observables import (
    ActivationDecay,
    AttentionEntropy,
    Concepts,
    Loss,
    Observable,
)
from ontogeny.store import read_cell
from ontogeny.study import read_study
from ontogeny.study.cells.merge import stack
from ontogeny.study.folder.controls import control_steps
from ontogeny.summary import with_verdicts
from ontogeny.summary.controls import with_controls
from ontogeny.summary.verdicts import LEVELS
from ontogeny.training import record_training_run
from planted_runs import planted

BESIDE = 3  # control runs of a page
STEPS = 12  # at which each is read
BAR = 1.4
SMALL = {"width": 32, "vocab_size": 1024, "tokens_per_step": 512, "learning_rate": 1e-2}

Page = Mapping[str, xr.Dataset]


@dataclass(frozen=True)
class Sizes:
    """What is read of each checkpoint, how many runs there are, and where work lies."""

    folder: Path
    run: Path | None
    texts: int
    tokens: int
    controls: int
    seeds: int
    repeats: int
    training: int


def observables(layers: str, sizes: Sizes) -> list[Observable]:
    """Return what is observed of every run that has a loss and attention."""
    return [Loss(), *of_activations(layers, sizes.tokens), AttentionEntropy()]


def of_activations(layers: str, tokens: int | None) -> list[Observable]:
    return [
        ActivationDecay(layers, max_tokens=tokens),
        Concepts("pca", n_concepts=4, layers=layers, max_tokens=tokens),
    ]


def trained(sizes: Sizes, seed: int) -> Path:
    """Return a small run of one seed, trained unless it is kept."""
    folder = sizes.folder / f"run-{seed}"
    if not (folder / "training_log.json").is_file():
        record_training_run(
            folder, quick=True, random_state=seed, steps=sizes.training, **SMALL
        )
    return folder


def opened(folder: Path, texts: int) -> tuple[Trajectory, Inputs]:
    """Return a run and held-out texts of it."""
    trajectory = Trajectory.from_folder(folder)
    heldout = [
        json.loads(line) for line in (folder / "heldout.jsonl").read_text().splitlines()
    ]
    return trajectory, Inputs.from_texts(
        heldout[:texts], trajectory.tokenizer(), max_length=32
    )


def rows(page: Page) -> Iterator[tuple[str, xr.Dataset]]:
    """Give the observable and each row of a page."""
    for name, node in page.items():
        for i in range(node.sizes.get("row", 0)):
            yield name, node.isel(row=i)


def any_row(page: Page, verdict: str) -> bool:
    return any(bool(row[verdict]) for _, row in rows(page))


def share(found: Sequence[bool]) -> str:
    return f"{sum(found)}/{len(found)}"


def table(*cells: object) -> None:
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def nodes(tree: xr.DataTree) -> Page:
    return {
        name: node.to_dataset(inherit=False) for name, node in tree.children.items()
    }


@dataclass(frozen=True)
class Studied:
    """One run that was studied by itself: its cells, and what followed from them."""

    cells: Page
    nodes: Page


def studied(
    trajectory: Trajectory, inputs: Inputs, watched: list, folder: Path
) -> Studied:
    study = Study(trajectory, inputs, watched, device="cpu")
    tree = study.run(folder)
    problems = json.loads(tree.attrs["problems"])
    assert not problems, problems
    steps = [int(step) for step in trajectory.steps]
    cells = {o.name: stack(folder, o, steps, read_cell).load() for o in watched}
    for each in cells.values():
        each.attrs["reference_step"] = steps[-1]
    return Studied(cells, nodes(tree))


def page_of(
    run: Studied, beside: Mapping[str, Studied], watched: Sequence[Observable]
) -> Page:
    """Return the page of a run with control runs beside it, all of them studied already."""
    made: dict[str, xr.Dataset] = {}
    for o in watched:
        others = {name: each.nodes[o.name] for name, each in beside.items()}
        made[o.name] = o.summarise(
            with_controls(run.cells[o.name], others, o.quantities), {}
        )
    return with_verdicts(made)


def heldout(sizes: Sizes) -> None:
    """Take each control as the run, with three of the others as its controls."""
    source = sizes.run or trained(sizes, 0)
    trajectory, inputs = opened(source, sizes.texts)
    watched = observables("model.layers.*.mlp", sizes)
    steps = [int(step) for step in trajectory.steps]
    read = trajectory.select(steps=control_steps(steps, STEPS, steps[-1]))
    runs = {}
    for seed in range(sizes.controls):
        where = sizes.folder / f"heldout-{source.name}-{sizes.texts}-{seed}"
        runs[f"turned {seed}"] = studied(
            read.control("turned", seed), inputs, watched, where
        )
    names = list(runs)
    pages = []
    for i, name in enumerate(names):
        others = [names[(i + k) % len(names)] for k in range(1, BESIDE + 1)]
        pages.append(page_of(runs[name], {n: runs[n] for n in others}, watched))
    beyond = Counter(node for page in pages for node, row in rows(page) if row.beyond)
    judged = Counter(node for page in pages for node, _ in rows(page))
    every = [row for page in pages for _, row in rows(page)]
    low = [
        any(row.p_control <= LEVELS.control for _, row in rows(page)) for page in pages
    ]
    print(
        f"\nheldout: {len(pages)} controls of {len(read)} of {len(steps)} checkpoints"
    )
    table(
        "pages with a row beyond",
        "learned",
        "with p_control <= 0.05, moved or not",
        "rows a page",
        "rows moved",
        "rows changed",
    )
    table(
        share([any_row(page, "beyond") for page in pages]),
        share([any_row(page, "learned") for page in pages]),
        share(low),
        len(list(rows(pages[0]))),
        *(
            share([bool(row[verdict]) for row in every])
            for verdict in ("moved", "changed")
        ),
    )
    table(
        "observable",
        "rows beyond",
        "rows with p < 0.05, uncorrected, of the change",
        "half",
    )
    for node, count in judged.items():
        p = np.array(
            [
                [float(row[f"p_control_{what}"]) for what in ("change", "half")]
                for page in pages
                for name, row in rows(page)
                if name == node
            ]
        )
        below = [f"{np.mean(p[np.isfinite(p[:, k]), k] < 0.05):.3f}" for k in (0, 1)]
        table(node, f"{beyond[node]}/{count}", *below)


def real(sizes: Sizes) -> None:
    """Study small trained runs with three controls each."""
    watched = observables("model.layers.*.mlp", sizes)
    print(f"\nreal: {sizes.seeds} seeds, {sizes.training} steps of training")
    table(
        "seed",
        "loss",
        "control runs' last loss",
        "loss learned",
        "activations of layer 0 beyond",
        "p",
        *(f"{o.name} beyond" for o in watched),
    )
    for seed in range(sizes.seeds):
        trajectory, inputs = opened(trained(sizes, seed), sizes.texts)
        study = Study(trajectory, inputs, watched, device="cpu", controls=BESIDE)
        page = nodes(study.run(sizes.folder / f"real-{seed}-{sizes.texts}"))
        loss = page["loss"].isel(row=0)
        first = page["activation-decay"].isel(row=0)
        assert str(first.row_layer.item()).endswith(".0.mlp"), first.row_layer.item()
        table(
            seed,
            f"{float(loss.first_value):.2f} to {float(loss.last_value):.2f}",
            ", ".join(f"{value:.2f}" for value in loss.control_last.values),
            "yes" if loss.learned else "no",
            "yes" if first.beyond else "no",
            f"{float(first.p_control):.2g}",
            *(
                share([bool(r.beyond) for n, r in rows(page) if n == o.name])
                for o in watched
            ),
        )


def of_planted(sizes: Sizes) -> None:
    """Study planted runs that went somewhere without direction, or nowhere."""
    watched = of_activations("layers.*", None)
    print(f"\nplanted: {sizes.repeats} runs of each kind")
    table(
        "kind",
        "runs with a row beyond",
        "learned",
        "changed",
        "rows beyond",
        "rows changed",
    )
    for kind in ("walk", "memory"):
        pages = []
        for seed in range(sizes.repeats):
            run = planted(kind, random_state=seed)
            study = Study(
                run.trajectory, run.inputs, watched, device="cpu", controls=BESIDE
            )
            pages.append(nodes(study.run(sizes.folder / f"{kind}-{seed}")))
        every = [row for page in pages for _, row in rows(page)]
        table(
            kind,
            *(
                share([any_row(p, v) for p in pages])
                for v in ("beyond", "learned", "changed")
            ),
            *(share([bool(row[v]) for row in every]) for v in ("beyond", "changed")),
        )


def study_file(run: Path, folder: Path, more: str) -> Path:
    """Write the demo's study of a run, without its own table of controls."""
    folder.mkdir(parents=True)
    (folder / "run").symlink_to(run.resolve())
    values = demo._FULL | {"controls": 0, "control_steps": 0}
    template = Path(demo.__file__).with_name("demo-study.toml").read_text()
    text = template.format(title="cost", **values)
    tables = [each for each in text.split("\n\n") if not each.startswith("[controls]")]
    path = folder / "study.toml"
    path.write_text("\n\n".join([*tables, more]))
    return path


def one_study(run: Path, more: str) -> tuple[float, float]:
    """Return CPU seconds of one study, and the peak of the process's memory in MiB."""
    import transformers  # noqa: F401  (not part of what is timed)

    with tempfile.TemporaryDirectory() as folder:
        study = read_study(study_file(run, Path(folder) / "study", more))
        start = time.process_time()
        study.run(Path(folder) / "result")
        seconds = time.process_time() - start
    status = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return seconds, int(status.split()[0]) / 1024


def cost(sizes: Sizes) -> None:
    """Time studies with and without one control run by turns, each in a process of its own."""
    run = sizes.run or trained(sizes, 0)
    tables = {"without": "", "with": "[controls]\ncount = 1\nsteps = 8\n"}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
    print(
        f"\ncost: the demo's study of {len(Trajectory.from_folder(run))} checkpoints, bar {BAR}"
    )
    table("control runs", "CPU seconds", "peak memory in MiB")
    context = multiprocessing.get_context("spawn")
    for _ in range(2):
        for name, more in tables.items():
            with ProcessPoolExecutor(1, mp_context=context) as process:
                found[name].append(process.submit(one_study, run, more).result())
            table(name, *(f"{value:.1f}" for value in found[name][-1]))
    means = {
        name: [statistics.mean(v) for v in zip(*all_, strict=True)]
        for name, all_ in found.items()
    }
    ratios = [b / a for a, b in zip(means["without"], means["with"], strict=True)]
    table("ratio", *(f"{ratio:.2f}" for ratio in ratios))


SECTIONS: dict[str, Callable[[Sizes], None]] = {
    "heldout": heldout,
    "real": real,
    "planted": of_planted,
    "cost": cost,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "sections", nargs="*", help=f"of {', '.join(SECTIONS)}; default all"
    )
    parser.add_argument("--run", type=Path, help="a recorded run with heldout.jsonl")
    parser.add_argument("--keep", type=Path, help="folder that work is kept in")
    parser.add_argument("--texts", type=int, default=30)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--controls", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument(
        "--repeats", type=int, default=20, help="planted runs of each kind"
    )
    parser.add_argument(
        "--training", type=int, default=300, help="updates of the small runs"
    )
    options = parser.parse_args()
    if unknown := set(options.sections) - set(SECTIONS):
        parser.error(
            f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}"
        )
    with tempfile.TemporaryDirectory() as scratch:
        sizes = Sizes(
            options.keep or Path(scratch),
            options.run,
            options.texts,
            options.tokens,
            options.controls,
            options.seeds,
            options.repeats,
            options.training,
        )
        for name in options.sections or SECTIONS:
            SECTIONS[name](sizes)


if __name__ == "__main__":
    main()
