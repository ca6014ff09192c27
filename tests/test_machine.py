"""What a process may use of this machine is read from the files that say it."""

import os

import pytest

from ontogeny import machine


@pytest.mark.parametrize(
    ("line", "controller"),
    [("0::/jobs/job_8", ""), ("7:cpu,memory:/jobs/job_8", "memory")],
)
@pytest.mark.parametrize("limited", [".", "jobs", "jobs/job_8"])
def test_the_limit_of_a_container_or_of_a_batch_job_counts(
    tmp_path, monkeypatch, line, controller, limited
):
    here = machine.memory_of_this_machine()
    assert here is None or here > 1 << 20
    (tmp_path / "jobs" / "job_8").mkdir(parents=True)
    (tmp_path / "limit").write_text("max\n")
    (tmp_path / limited / "limit").write_text("4096\n")
    (tmp_path / "groups").write_text(f"1:name=systemd:/else\n\n{line}\n")
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "groups")
    monkeypatch.setattr(machine, "_LIMITS", {controller: tmp_path / "limit"})
    assert machine.memory_of_this_machine() == 4096


def test_without_cgroups_the_machine_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "_GROUPS", tmp_path / "none")
    monkeypatch.setattr(machine, "_LIMITS", {"": tmp_path / "limit"})
    known = "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})
    built_in = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if known else None
    )
    assert machine.memory_of_this_machine() == built_in


def test_what_is_free_is_less_than_all_and_within_the_limit(tmp_path, monkeypatch):
    free, everything = machine.free_memory(), machine.memory_of_this_machine()
    assert free is None or 0 < free <= everything
    monkeypatch.setattr(machine, "_MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "memory_of_this_machine", lambda: 5000)
    assert machine.free_memory() == 5000
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 3 kB\n")
    assert machine.free_memory() == 3072
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable: 8 kB\n")
    assert machine.free_memory() == 5000
