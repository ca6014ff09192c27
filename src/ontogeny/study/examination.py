"""What a study finds out of its model before it computes: once, with a dry run of what is new."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..observables import Observable
from .build import has_begun
from .dry_run import DryFailure
from .probe import Probe


class Examination:
    """The probe of a study, and the dry runs of its observables, each made once.

    Which observables get a dry run depends on the folder: those that have no finished cell in it.
    What one folder spared its study is tried when another one asks for it.

    Parameters
    ----------
    probe
        Gives the probe, with a dry run of some observables; it may be kept in a folder.
    observables
        All of the study.
    """

    def __init__(
        self,
        probe: Callable[[Sequence[Observable], Path | None], Probe],
        observables: Sequence[Observable],
    ) -> None:
        self._make, self._observables = probe, observables
        self._found: Probe | None = None
        self._failures: dict[str, DryFailure | None] = {}

    def of(self, folder: Path | None, *, keep: bool = False) -> Probe:
        """Return the probe, with the failures of what has no finished cell in a folder.

        With `keep` the folder may keep it, and give what it has kept.
        """
        wanted = [o for o in self._observables if folder is None or not has_begun(folder, o)]
        untried = [o for o in wanted if o.name not in self._failures]
        if self._found is None or untried:
            self._found = self._make(untried, folder if keep else None)
            failed = {failure.node: failure for failure in self._found.failures}
            self._failures |= {o.name: failed.get(o.name) for o in untried}
        failures = (self._failures[o.name] for o in wanted)
        return replace(self._found, failures=tuple(f for f in failures if f is not None))
