"""``ontogeny run --watch``: what it refuses, and what it says."""

import numpy as np
import pytest

from helpers.command import call
from helpers.study_examples import developing, record


@pytest.fixture
def study(tmp_path):
    record(developing((0, 1, 2)), tmp_path / "run")
    np.save(tmp_path / "ids.npy", np.random.default_rng(0).integers(4, 40, (8, 10)))
    path = tmp_path / "study.toml"
    path.write_text(
        '[trajectory]\nfolder = "run"\n[inputs]\ntokens = "ids.npy"\n[options]\ndevice = "cpu"\n'
        '[[observables]]\nkind = "activation-decay"\nlayers = "mlp"\n'
    )
    return path


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--until", "5"], "--until and --patience go with --watch SECONDS"),
        (["--watch", "5", "--rereference"], "--rereference does not go with --watch"),
        (
            ["--watch", "5", "--max-revisions", "2"],
            "--max-revisions does not go with --watch",
        ),
        (["--watch", "0"], "--watch must be a finite number above 0; got 0.0"),
        (["--watch", "1", "--until", "-1"], "--until must"),
        (
            ["--watch", "1", "--patience", "-1"],
            "--patience must be a finite number above 0",
        ),
    ],
)
def test_what_means_nothing_is_refused(study, tmp_path, capsys, options, said):
    code, _, err = call(capsys, "run", study, "--output", tmp_path / "out", *options)
    assert code == 1 and said in err
    assert not (tmp_path / "out").exists()


def test_a_study_file_with_a_mistake_is_refused_and_not_waited_for(
    study, tmp_path, capsys
):
    study.write_text(study.read_text().replace("layers", "layres"))
    code, _, err = call(
        capsys, "run", study, "--output", tmp_path / "out", "--watch", "1"
    )
    assert code == 1 and "layres" in err


def test_it_says_where_the_page_is_and_exits_as_a_run_does(study, tmp_path, capsys):
    out = tmp_path / "out"
    watched = ("run", study, "--output", out, "--watch", "1", "--until", "2", "--quiet")
    code, said, _ = call(capsys, *watched)
    assert code == 0 and said.splitlines()[-1] == f"page: {out / 'report.html'}"


def test_ctrl_c_is_answered_with_what_is_kept(study, tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ontogeny.study.watch", stop)
    code, _, err = call(
        capsys, "run", study, "--output", tmp_path / "out", "--watch", "1"
    )
    assert code == 130 and "stopped; what is finished is kept" in err
