"""Refuse a tag that is no release of what the repository says: ``python .ci/release.py v1.2.3``."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from page_age import older  # noqa: E402


def faults(tag: str, root: Path = ROOT) -> list[str]:
    """Return what speaks against releasing a checkout under a tag."""
    found = []
    version = re.search(
        r'__version__ = "(.+)"', (root / "src/ontogeny/_version.py").read_text("utf-8")
    )[1]
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and src/ontogeny/_version.py says {version}")
    for path in ("pyproject.toml", "papers/pyproject.toml"):
        project = tomllib.loads((root / path).read_text("utf-8"))["project"]
        if not project.get("urls"):
            found.append(
                f"{path} has no [project.urls]: say where source and issues are"
            )
        if project.get("version", version) != version:
            found.append(f"{path} says version {project['version']}, not {version}")
    citation = (root / "CITATION.cff").read_text("utf-8")
    if f"version: {version}" not in citation.replace('"', ""):
        found.append(f"CITATION.cff does not say version {version}")
    if f"## {version}" not in (root / "CHANGELOG.md").read_text("utf-8"):
        found.append(f"CHANGELOG.md has no section {version}")
    return found + older(root)


if __name__ == "__main__":
    sys.exit("\n".join(faults(sys.argv[1])) or 0)
