"""The page that `ontogeny study` proposes for a run, with observables of other presets."""

from ontogeny.start import Wishes, propose
from ontogeny.study.file import make_study
from reference.odd_models import MODULES

# Dictionaries that a solver fits, and ranks that are read against draws: no closed form gives
# them, and tests of theirs hold them against planted truth and other libraries.
FITTED = {"joint-concepts", "learned-concepts", "concepts-ica", "weight-rank"}
# What the pages of one model, of a fine-tuning and of circuits hold beside the standard one.
MORE = {
    "weight-change": {},
    "effective-dimensions": {},
    "similarity": {},
    "attention-heads": {"n_sequences": 8},
    "calibration": {"objective": "causal"},
    "ngram-agreement": {"objective": "causal"},
}


def studied(odd, folder):
    """Run the study of a run's folder; return its tree, and the kinds that were left out."""
    wishes = Wishes(
        str(folder),
        texts=(str(folder / "texts.txt"),),
        abilities=(str(folder / "pairs.jsonl"), str(folder / "questions.jsonl")),
        sets=("controls.count=0", "options.noise=0"),
        **(
            {"model": f"{MODULES}:{odd.config}", "tokenizer": str(folder)}
            if odd.is_own
            else {}
        ),
    )
    proposal = propose(wishes, folder)
    left_out = set(proposal.left_out) - {"minimal-pairs", "choices"}
    content = dict(proposal.content)
    names = [
        f"{entry['kind']}-{entry.get('extractor', '')}".strip("-")
        for entry in content["observables"]
    ]
    content["observables"] = [
        entry
        for entry, name in zip(content["observables"], names, strict=True)
        if name not in FITTED
    ]
    content["observables"] += [{"kind": kind, **MORE[kind]} for kind in MORE]
    layers = proposal.shown.every_layer
    for entry in content["observables"]:
        if entry["kind"] in ("effective-dimensions", "similarity"):
            entry["layers"] = layers
    asked = [
        entry for entry in content["observables"] if entry["kind"] not in odd.lacks
    ]
    content["observables"] = asked
    result = make_study(content, folder).run(folder / "study")
    assert not list(result.problems()), str(result.problems())
    return result.tree, left_out
