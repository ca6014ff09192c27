"""Train small models on a text, study them, and write the pages that the guide "Showcase" tells of.

    python examples/showcase.py FOLDER texts/wiki.txt   # a text, a folder or a glob
    python examples/showcase.py FOLDER                  # Python's documentation
    python examples/showcase.py FOLDER TEXT --quick     # tiny models, to see that everything runs

FOLDER then holds ``runs`` (checkpoints), ``studies``, a page for each model, one that compares
three seeds, and ``showcase.json`` with what the guide cites. What is there already is not done
again. About half an hour on two free cores.
"""

import argparse
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ontogeny as og
from ontogeny.start import Wishes, propose
from ontogeny.study import make_study
from ontogeny.tasks import python_documentation, text_files
from ontogeny.training import record_training_run

SIZES: dict[str, dict[str, Any]] = {
    "masked": {"steps": 2000, "layers": 4, "checkpoints": 52},
    "causal": {
        "architecture": "gpt-neox",
        "steps": 1000,
        "layers": 6,
        "length": 128,
        "tokens_per_step": 1024,
        "checkpoints": 52,
    },
} | {
    f"seed-{seed}": {"steps": 500, "layers": 4, "checkpoints": 52} for seed in range(3)
}
QUICK = {
    "steps": 60,
    "layers": 2,
    "width": 32,
    "vocab_size": 600,
    "tokens_per_step": 512,
    "length": 32,
    "checkpoints": 12,
}
TITLES = {
    "masked": "A small EuroBERT learns to fill gaps",
    "causal": "A small GPT-NeoX learns to predict the next token",
}
STUDIED = {
    "masked": ("everything", "all", 3, 52),
    "causal": ("circuits", "0,66,132,198,286,374,484,616,792,1000", 3, 10),
}
"""Preset, which checkpoints, how many control runs, and at how many steps each is read: at all
of the run's, since births can be compared only where both are read as often."""
OF_SEEDS = ("standard", "0,44,99,154,209,264,319,396,500", 2, 9)
LEFT_OUT = {
    "masked": {"commutators", "orientation", "similarity", "learning-dynamics"},
    "causal": {
        "concept-effects",
        "similarity",
        "calibration",
        "logit-lens",
        "copying-heads",
    },
}
"""What takes long, so that all of it is done in an evening."""
LEFT_OUT_OF_SEEDS = {
    "concepts",
    "predictions",
    "token-losses",
    "text-statistics",
    "weight-rank",
}
MARKS = {"<unk>": "<|unk|>", " @-@ ": "-", " @,@ ": ",", " @.@ ": "."}
"""WikiText's marks: of a rare word, which is no text, and of signs that were set apart."""

CURVE = {"of": "concepts-ica", "select": {"distance": "procrustes"}}
MORE: list[dict[str, Any]] = [
    {"kind": "transform-dynamics", "of": "concepts-ica"},
    {"kind": "fits", **CURVE},
    {"kind": "fits", "of": "activation-decay", "variable": "rotation_removed"},
    {"kind": "signals", **CURVE},
    {
        "kind": "word-semantics",
        "on": "corpus",
        "vocab_size": 300,
        "n_contexts": 1000,
        "n_concepts": 30,
    },
]


PICTURES = {
    "heads": "attention-heads/previous-token",
    "regimes": "concepts-ica-regimes/curves",
}
"""Figures of the masked model that the guide shows, beside the tops of the pages."""


def texts_of(source: str | None) -> list[str]:
    """Return the texts of a file, folder or glob, without WikiText's marks."""
    if source is None:
        return python_documentation()
    texts = text_files(source, unit="line")
    for mark, plain in MARKS.items():
        texts = [text.replace(mark, plain) for text in texts]
    return texts


def recorded(folder: Path, name: str, texts: list[str], quick: bool) -> Path:
    """Return a recorded run; one that was stopped half-way is made anew."""
    run = folder / "runs" / name
    if not run.exists():
        partial = run.with_name(f".{name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        seed = int(name.rpartition("-")[2]) if name.startswith("seed") else 0
        sizes = SIZES[name] | (QUICK if quick else {})
        record_training_run(partial, texts, random_state=seed, workers=1, **sizes)
        partial.rename(run)
    return run


def study(folder: Path, name: str, quick: bool) -> Path:
    """Study a recorded run on texts that it was not trained on; return the study's folder."""
    run, out = folder / "runs" / name, folder / "studies" / name
    preset, steps, controls, control_steps = STUDIED.get(name, OF_SEEDS)
    heldout = str(run / "heldout.jsonl")
    sizes = ["inputs.max_texts=100", "options.noise=4"]
    sizes += [f"controls.count={controls}", f"controls.steps={control_steps}"]
    steps = "all" if quick else steps
    wishes = Wishes(str(run), preset, texts=[heldout], steps=steps, sets=sizes)
    content = dict(propose(wishes, folder).content)
    content["inputs"] = {
        "heldout": content["inputs"],
        "corpus": {"files": [heldout], "max_length": content["inputs"]["max_length"]},
    }
    content["observables"] = [
        table
        | ({"max_tokens": 500 if quick else 2000} if "max_tokens" in table else {})
        for table in content["observables"]
        if table["kind"] not in LEFT_OUT.get(name, LEFT_OUT_OF_SEEDS)
    ]
    if name in TITLES:
        content["title"] = TITLES[name]
    if name == "masked":
        content["observables"] += MORE
    with ThreadPoolExecutor(1) as executor:
        make_study(content, folder).run(out, executor)
    return out


def pictures(folder: Path, out: Path) -> None:
    """Write what the guide shows as PNG: the tops of the pages, and figures."""
    from gallery import pictures as tops_of_pages  # beside this script, where it is run
    from page_age import record

    tops_of_pages({name: folder / f"{name}.html" for name in (*TITLES, "seeds")}, out)
    result = og.open_study(folder / "studies" / "masked")
    for name, figure in PICTURES.items():
        result.figure(figure).save(out / f"{name}.png")
    record(out, PICTURES)


def _births(concepts: Any) -> dict[str, Any]:
    """Return how many concepts there are, were born and got a name, in a run and its controls."""
    found: dict[str, Any] = {}
    for name in ("n_concepts", "n_born", "named"):
        control = concepts[f"{name}_control"].sum("layer").values
        found[name] = {
            "run": int(concepts[name].sum()),
            "controls": control.astype(int).tolist(),
        }
    return found


def facts(folder: Path, name: str) -> dict[str, Any]:
    """Return what a study says of a run: its size, its sentences, and its named concepts."""
    result = og.open_study(folder / "studies" / name)
    log = json.loads(
        (folder / "runs" / name / "training_log.json").read_text(encoding="utf-8")
    )
    loss = result["loss"]
    lines = [
        each for each in ("uniform", "unigram", "bigram") if f"loss_{each}" in loss
    ]
    size = log["settings"]
    return {
        "run": {
            "architecture": size["architecture"],
            "parameters": json.loads(result.attrs["model"])["parameters"],
            "layers": size["layers"],
            "width": size["width"],
            "steps": size["steps"],
            "tokens": size["steps"] * size["tokens_per_step"],
            "recorded": len(og.Trajectory.from_folder(folder / "runs" / name)),
            "studied": len(json.loads(result.attrs["steps"])),
            "training_loss": round(sum(log["loss"][-50:]) / 50, 3),
            "training_unigrams": round(log["unigram_entropy"], 3),
        },
        "loss": {
            "first": round(float(loss.loss[0]), 3),
            "last": round(float(loss.loss[-1]), 3),
            **{each: round(float(loss[f"loss_{each}"]), 3) for each in lines},
        },
        "births": _births(result["joint-concepts"]),
        "findings": json.loads(result.attrs["findings"]),
        "sentences": {
            node: json.loads(result[node].attrs.get("statements", "[]"))
            for node in result
        },
        "named": [
            {key: row[key] for key in ("name", "layer", "kind", "born")}
            for row in result.concept.table("joint-concepts")
            if row["name"]
        ],
    }


def main() -> None:
    """Train, study, and write the pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, help="where runs, studies and pages are kept"
    )
    parser.add_argument(
        "text", nargs="?", help="file, folder or glob; Python's documentation"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny models, in a minute or two"
    )
    parser.add_argument(
        "--pictures", type=Path, help="folder for the figures of the guide"
    )
    options = parser.parse_args()
    folder, quick = options.folder, options.quick
    folder.mkdir(parents=True, exist_ok=True)
    texts = texts_of(options.text)
    for name in SIZES:
        recorded(folder, name, texts, quick)
    studies = {name: study(folder, name, quick) for name in SIZES}
    for name in TITLES:
        print(og.open_study(studies[name]).report(folder / f"{name}.html"), flush=True)
    seeds = {name: place for name, place in studies.items() if name not in TITLES}
    compared = og.compare(seeds, title="Three seeds of the small EuroBERT")
    print(og.report.write(compared, folder / "seeds.html"))
    if options.pictures:
        pictures(folder, options.pictures)
    said = {name: facts(folder, name) for name in SIZES}
    written = json.dumps(said, indent=1, ensure_ascii=False)
    (folder / "showcase.json").write_text(f"{written}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
