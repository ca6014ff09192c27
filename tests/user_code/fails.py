"""Code of a user with a mistake in each marked line, which a type checker must find.

``warn_unused_ignores`` makes a mark on a line without an error an error of its own.
"""

import ontogeny as og


def mistakes() -> None:
    og.Study(1, 2, nonsense=3)  # type: ignore[call-arg, arg-type]
    og.study_of  # type: ignore[attr-defined]  # noqa: B018
    og.Trajectory.from_folders("runs")  # type: ignore[attr-defined]
    og.Recorder("run", evry=10)  # type: ignore[call-arg]
    og.open_study("study", rev="main")  # type: ignore[call-arg]
    og.compare({}, aligned="step")  # type: ignore[call-arg]
    og.observables.AttentionEntropy(layer="*")  # type: ignore[call-arg]
    og.dynamics.half_change_step(nonsense=1)  # type: ignore[call-arg]
    og.observable("weights", better=1)  # type: ignore[arg-type]
    og.open_study("study").sumary()  # type: ignore[attr-defined]
