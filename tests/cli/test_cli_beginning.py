"""What is known before a study begins: what it will download is asked about, and told."""

from types import SimpleNamespace

from ontogeny.cli import beginning
from ontogeny.start.wishes import Wishes


def test_what_is_downloaded_is_part_of_the_cost(monkeypatch, tmp_path):
    proposal = SimpleNamespace(content={})

    def propose(wishes, folder, before, *_):
        before([])
        return proposal

    asked = []
    monkeypatch.setattr(
        beginning, "to_fetch", lambda trajectory, bounded=False: 7_000_000_000
    )
    monkeypatch.setattr(beginning, "propose", propose)
    monkeypatch.setattr(beginning, "estimate", lambda content, folder, fetched: fetched)
    monkeypatch.setattr(beginning, "_ask", lambda limits, *_: asked.append(limits))
    begun = beginning.begin(Wishes("run"), tmp_path / "study.toml", yes=True, of=None)
    assert begun.cost == 7_000_000_000 and len(asked) == 1
