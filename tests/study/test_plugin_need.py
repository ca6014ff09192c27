"""A package of somebody else adds a need and an observable, and a study file names them."""

import os
from pathlib import Path

import pytest

from helpers import warm_process
from helpers.study_examples import record, tiny_model
from ontogeny.tasks import train_tokenizer

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "observables.md"
TEXTS = ["a good film", "a fine film", "a great film and a good one"]
RUN = """
import sys
import numpy as np
from ontogeny.study import read_study

study = read_study("study.toml")
plan = study.plan()
assert plan.to_do == 2 and plan.forwards == 0, plan
tree = study.run("s")
assert tree.attrs["problems"] == "[]", tree.attrs["problems"]
node = tree["logit-entropy"]
assert node.entropy.dims == ("step",) and node.sizes["step"] == 2
assert bool((node.entropy > 0).all()) and bool((node.entropy < np.log(400)).all())
assert node.texts.values.tolist() == [3, 3]
assert study.plan("s").to_do == 0
print("as planned")
"""


def _install(folder):
    """Install the package of the guide the way that an installer does: module and dist-info."""
    guide = GUIDE.read_text(encoding="utf-8")
    section = guide[guide.index("## Your own need") :]
    code = section.split("```python\n", 1)[1].split("```", 1)[0]
    information = folder / "entropies-1.0.dist-info"
    information.mkdir(parents=True)
    (folder / "entropies.py").write_text(code)
    (information / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: entropies\nVersion: 1.0\n"
    )
    (information / "entry_points.txt").write_text(
        "[ontogeny.observables]\nlogit-entropy = entropies:LogitEntropy\n"
    )


@pytest.mark.slow
def test_a_package_adds_a_need_and_an_observable_that_a_study_file_names(tmp_path):
    _install(tmp_path / "site")
    tokenizer = train_tokenizer(TEXTS * 4, 300)
    models = {step: tiny_model(step) for step in (0, 1)}
    for model in models.values():
        model.resize_token_embeddings(len(tokenizer))
    record(models, tmp_path / "run")
    for checkpoint in (tmp_path / "run").glob("checkpoint-*"):
        tokenizer.save_pretrained(checkpoint)
    (tmp_path / "study.toml").write_text(
        f'[trajectory]\nfolder = "run"\n[inputs]\ntexts = {TEXTS}\n[options]\ndevice = "cpu"\n'
        '[[observables]]\nkind = "logit-entropy"\n'
    )
    paths = [str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = warm_process.run(["-c", RUN], env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "as planned" in done.stdout
