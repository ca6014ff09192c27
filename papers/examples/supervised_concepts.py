"""When does a model begin to read sentiment, and when grammaticality?

    python papers/examples/supervised_concepts.py RUN SST2 COLA STUDY

RUN is a folder of checkpoints with their tokenizer; SST2 a file with lines "label sentence"
(stsa.binary.train), COLA the corpus of linguistic acceptability (in_domain_train.tsv); STUDY the
folder to be written. Both sets are drawn with equal classes; two thirds find the directions, one
third tests them. Sentences that were not drawn, of any class, make the random concepts of TCAV.
The report lies in STUDY/report.html, the sentences are printed.
"""

import argparse
import json
from pathlib import Path

import ontogeny as og
from ontogeny.observables import TCAV, ConceptDirections
from ontogeny.tasks import LabelledTexts, read_labelled


def without(texts: LabelledTexts, drawn: LabelledTexts) -> LabelledTexts:
    """Return the texts that were not drawn, nor equal one that was."""
    known = set(drawn.texts)
    return texts.subset([i for i, text in enumerate(texts.texts) if text not in known])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("sst2", type=Path)
    parser.add_argument("cola", type=Path)
    parser.add_argument("study", type=Path)
    parser.add_argument("--texts", type=int, default=2000, help="sentences of each set")
    parser.add_argument("--steps", type=int, default=16, help="checkpoints, log-spaced")
    parser.add_argument(
        "--layers", default="resid", help="layers, as a pattern or a short name"
    )
    parser.add_argument("--random", type=int, default=200, help="shuffled label sets")
    parser.add_argument(
        "--others", type=int, default=1400, help="sentences for random concepts"
    )
    options = parser.parse_args()

    trajectory = og.Trajectory.from_folder(options.run).select(
        count=options.steps, spacing="log"
    )
    tokenizer = trajectory.tokenizer()
    files = {
        "semantic": read_labelled(options.sst2, file_format="label-text"),
        "syntactic": read_labelled(options.cola, file_format="cola"),
    }
    drawn = {name: texts.balanced(options.texts) for name, texts in files.items()}
    others = {
        f"other-{name}": without(texts, drawn[name]).sample(options.others)
        for name, texts in files.items()
    }
    inputs = {
        name: texts.inputs(tokenizer, max_length=64)
        for name, texts in (drawn | others).items()
    }
    shared = {"on": tuple(drawn), "n_random": options.random, "intercept": True}
    study = og.Study(
        trajectory,
        inputs,
        [
            og.observables.Loss(on="semantic"),
            ConceptDirections(options.layers, **shared),
            TCAV(options.layers, **shared, random=tuple(others)),
        ],
        title="Sentiment and grammaticality",
    )
    result = study.run(options.study)
    result.report(options.study / "report.html")
    for node in ("loss", "cav", "tcav"):
        for sentence in json.loads(result[node].attrs["statements"]):
            print(f"{node}: {sentence}")


if __name__ == "__main__":
    main()
