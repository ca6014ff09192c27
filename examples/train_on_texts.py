"""Train a small masked or causal language model on a folder of texts, with checkpoints to study.

    python examples/train_on_texts.py TEXTS RUN [--unit line] [--architecture gpt-neox]

TEXTS is a file, a folder or a glob; RUN a new folder. Then study it with ``local_texts.toml``.
"""

import argparse

from ontogeny.tasks import text_files
from ontogeny.training import record_training_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", help="file, folder or glob of texts")
    parser.add_argument("run", help="new folder for the checkpoints")
    parser.add_argument(
        "--unit", default="paragraph", choices=["paragraph", "line", "file"]
    )
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument(
        "--architecture", default="eurobert", choices=["eurobert", "gpt-neox"]
    )
    parser.add_argument("--checkpoints", type=int, default=32, help="at most so many")
    options = parser.parse_args()
    texts = text_files(options.texts, unit=options.unit)
    print(f"{len(texts)} texts, {sum(map(len, texts)):,} characters")

    def progress(step: int, steps: int, loss: float) -> None:
        if step % max(1, steps // 10) == 0:
            print(f"step {step} of {steps}: loss {loss:.2f}")

    sizes = {
        name: getattr(options, name)
        for name in ("steps", "architecture", "checkpoints")
    }
    folder = record_training_run(options.run, texts, progress=progress, **sizes)
    print(f"checkpoints: {folder}")


if __name__ == "__main__":
    main()
