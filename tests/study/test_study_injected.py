"""A failure put into every kind of observable: whatever fails is in the result and on the page."""

import html

import pytest

import ontogeny as og
from helpers.every_kind import others, with_obstacle
from helpers.quick_fits import few_starts
from helpers.study_examples import developing, tiny_inputs
from ontogeny.observables import make
from ontogeny.observables.registry import kinds
from ontogeny.report.failures import read_failures
from ontogeny.start import PRESETS, look
from ontogeny.start.presets import fitted
from ontogeny.words.content import read_content

__all__ = ["few_starts"]

STEPS = (0, 1, 4)
SPECIAL = {
    "cav": {"layers": "mlp", "on": "labelled"},
    "fits": {"of": "loss"},
    "labels": {"on": "labelled"},
    "learning-dynamics": {"of": "concepts-ica", "select": {"distance": "procrustes"}},
    "lipschitz": {"of": "concepts-ica", "extractor": "ica", "n_concepts": 8},
    "ngram-agreement": {"orders": [1]},
    "readout-accuracy": {"on": ["labelled"]},
    "readout-attention": {"on": ["labelled"]},
    "sae-probe": {"marker_ids": [5, 6], "on": "labelled"},
    "tcav": {"layers": "mlp", "on": "labelled"},
}
"""Arguments of kinds that cannot be studied by their defaults here."""


def every_observable(trajectory, inputs):
    """Return one observable of every kind at least."""
    tables, _ = fitted(
        PRESETS["everything"], look(trajectory[STEPS[-1]], inputs), len(STEPS)
    )
    tables += [{"kind": kind, **arguments} for kind, arguments in SPECIAL.items()]
    named = {}
    for table in tables:
        observable = make(
            table["kind"], **{k: v for k, v in table.items() if k != "kind"}
        )
        named.setdefault(observable.name, observable)
    return [
        *named.values(),
        *others({table["kind"] for table in tables}, of="concepts-ica"),
    ]


@pytest.fixture(scope="module")
def studied(few_starts):
    trajectory, inputs = og.Trajectory.from_models(developing(STEPS)), tiny_inputs(110)
    labelled = og.Inputs.from_tokens(
        inputs.ids,
        inputs.mask,
        inputs.special,
        labels=[i % 2 for i in range(len(inputs))],
        mask_token_id=inputs.mask_token_id,
        vocab_size=inputs.vocab_size,
    )
    observables = every_observable(trajectory, inputs)
    sets = {"text": inputs, "labelled": labelled}
    return og.Study(trajectory, sets, observables, noise=0, device="cpu"), observables


def test_the_panel_names_what_is_lost_first_and_counts_what_failed_in_part(
    studied, tmp_path, monkeypatch
):
    study, observables = studied
    chosen = [o for o in observables if o.name in ("loss", "similarity", "loss-fits")]
    real = type(chosen[0]).observe

    def fail_once(self, reading, state=None):
        if reading.step == STEPS[1]:
            raise RuntimeError("injected")
        return real(self, reading, state)

    monkeypatch.setattr(type(chosen[0]), "observe", fail_once)
    part = og.Study(study.trajectory, study.inputs, chosen, noise=0, device="cpu")
    with pytest.warns(og.errors.StudyWarning, match="cells failed"):
        result = part.run(tmp_path / "s")
    panel = read_failures(read_content(result))
    assert panel.heading == "1 of 3 observables failed"
    assert "1 other failed in part." in panel.lead
    assert [reason.where for reason in panel.reasons] == ["", "step 1"]


@pytest.mark.slow
def test_no_kind_of_observable_can_fail_unseen(studied, tmp_path, monkeypatch):
    study, observables = studied
    for cls in kinds().values():

        def fail(self, *arguments, **options):
            raise RuntimeError(f"injected into <{self.name}>")

        monkeypatch.setattr(cls, "observe", fail)
    with pytest.warns(og.errors.StudyWarning, match=r"cells failed"):
        result = study.run(tmp_path / "s", keep_going=True)
    names = [observable.name for observable in observables]
    problems = result.problems()
    assert set(problems.lost) == set(names) == {row.node for row in problems}
    page = og.open_study(tmp_path / "s").report(tmp_path / "page.html").read_text()
    assert f"{len(names)} of {len(names)} observables failed" in page
    # What is made of pairs fails before: these models have no tokenizer.
    early = {o.name for o in observables if o.kind in with_obstacle("no_tokenizer")}
    with_cells = [
        o.name
        for o in observables
        if o.needs() and o.source is None and o.name not in early
    ]
    for name in with_cells:
        assert f"injected into {html.escape(f'<{name}>')}" in page
    assert "injected into <" not in page  # whatever a message holds is escaped
