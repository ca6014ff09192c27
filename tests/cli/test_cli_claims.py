"""``ontogeny claims``: a table, files, and exit codes that tell a failure from what is unread."""

import csv
import io
import json

import pytest

import ontogeny as og
from helpers.command import call
from helpers.compared_runs import seeds
from ontogeny.claims import Certainty, Kind
from ontogeny.comparison.comparing import write_comparison
from ontogeny.words.page_claims import claims_of_result


@pytest.fixture(scope="module")
def compared():
    return og.compare(seeds(2))


@pytest.fixture(scope="module")
def folder(compared, tmp_path_factory):
    path = tmp_path_factory.mktemp("claims") / "both runs"
    write_comparison(compared, path)
    return path


def test_claims_of_runs_stand_under_their_names_and_join_by_subject(compared):
    claims = [c for c in claims_of_result(compared.tree) if c.kind is Kind.CHANGED]
    runs = {}
    for claim in claims:
        runs.setdefault(claim.subject.key, set()).add(claim.subject.run)
    assert len(runs) == 4 and all(
        names == {"seed 0", "seed 1"} for names in runs.values()
    )
    frame = compared.claims()
    together = frame[frame["run"] == ""]  # what only both of them show
    assert set(frame["run"]) == {"", "seed 0", "seed 1"}
    assert together["quantity"].tolist() == ["half_step"]
    assert frame["weight"].is_monotonic_decreasing


def test_the_table_the_json_and_the_csv_have_every_claim(folder, compared, capsys):
    count = len(compared.claims())
    code, out, _ = call(capsys, "claims", folder)
    assert code == 0 and len(out.splitlines()) == count + 1
    code, out, _ = call(capsys, "claims", folder, "--json")
    rows = json.loads(out)
    assert code == 0 and len(rows) == count
    assert {row["certainty"] for row in rows} <= {word.value for word in Certainty}
    code, out, _ = call(capsys, "claims", folder, "--csv")
    assert code == 0 and len(list(csv.DictReader(io.StringIO(out)))) == count


def test_a_sure_claim_is_expected_and_met(folder, tmp_path, capsys):
    expected = tmp_path / "expected.txt"
    expected.write_text("changed seed 0/loss by 500\nno forgot loss\n")
    assert call(capsys, "claims", folder, "--expect", expected)[:2] == (
        0,
        "every expectation is met\n",
    )


def test_each_failure_is_a_line_and_the_exit_code_is_one(folder, tmp_path, capsys):
    expected = tmp_path / "expected.txt"
    expected.write_text("changed loss by 1\nbeyond-motion loss\nno changed loss\n")
    code, out, _ = call(capsys, "claims", folder, "--expect", expected)
    assert code == 1
    assert [line.rpartition(": ")[0] for line in out.splitlines()] == [
        "changed loss by 1",
        "beyond-motion loss",
        "no changed loss",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lerned loss", "learned"),
        ("learned lss", "'loss'"),
        (None, "--expect must be a file"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_the_exit_code_is_two(
    folder, tmp_path, capsys, text, said
):
    expected = tmp_path / "expected.txt"
    if text is not None:
        expected.write_text(text)
    code, _, error = call(capsys, "claims", folder, "--expect", expected)
    assert code == 2 and said in error and len(error.splitlines()) == 1


def test_two_formats_at_once_are_refused(folder, capsys):
    code, _, error = call(capsys, "claims", folder, "--json", "--csv")
    assert code == 2 and "must not be given together" in error
