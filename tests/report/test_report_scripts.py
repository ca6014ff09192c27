"""The page's script is made of the modules in `report/scripts`, and of nothing else."""

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ontogeny.report.style import static_text

SCRIPTS = Path(__file__).parents[2] / "src" / "ontogeny" / "report" / "scripts"
MODULES = sorted(SCRIPTS.glob("*.js"))
IMPORT = re.compile(r'(?:import|export)\s*(?:\{[^}]*\}\s*from)?\s*"\./([\w-]+\.js)"')


def sha256(content):
    return hashlib.sha256(content).hexdigest()


def test_the_bundle_is_made_of_the_modules_as_they_are():
    origin = json.loads(static_text("page.min.json"))
    assert origin["digest"] == sha256(static_text("page.min.js").encode())
    made_of = {path.name: sha256(path.read_bytes()) for path in MODULES}
    assert origin["sources"] == made_of, "npm run bundle, in report/scripts"


def test_no_module_needs_one_that_needs_it():
    needs = {path.name: set(IMPORT.findall(path.read_text())) for path in MODULES}
    assert set().union(*needs.values()) <= needs.keys()
    while ready := [name for name, others in needs.items() if not others]:
        for name in ready:
            del needs[name]
        needs = {name: others.difference(ready) for name, others in needs.items()}
    assert not needs


def test_every_module_is_part_of_the_page():
    reached, waiting = set(), ["index.js"]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += IMPORT.findall((SCRIPTS / name).read_text())
    assert reached == {path.name for path in MODULES}


@pytest.fixture(scope="module")
def tools():
    if shutil.which("node") is None or not (SCRIPTS / "node_modules").is_dir():
        pytest.skip("needs node, and `npm install` in report/scripts")


@pytest.mark.parametrize("asked", ["check", "bundle"])
def test_names_are_imported_and_the_bundle_is_what_the_tool_makes(
    asked, tools, tmp_path
):
    report = tmp_path / "report"
    (report / "static").mkdir(parents=True)
    here = report / "scripts"
    shutil.copytree(
        SCRIPTS, here, ignore=shutil.ignore_patterns("node_modules"), symlinks=True
    )
    (here / "node_modules").symlink_to(SCRIPTS / "node_modules")
    made = subprocess.run(
        ["npm", "run", "--silent", asked], cwd=here, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stdout + made.stderr
    if asked == "bundle":
        for name in ("page.min.js", "page.min.json"):
            assert (report / "static" / name).read_text() == static_text(name)
