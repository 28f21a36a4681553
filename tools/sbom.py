"""``make sbom``: what comes with the built wheel and all its extras, as a CycloneDX document.

The wheel is installed into an environment of its own, and cyclonedx-py, in another one, describes
it. The versions are those of constraints.txt and the time is the commit's, so twice is the same.
Then each licence is looked at: whoever installs memd, or ships it with its libraries, must be able
to do so under memd's own.
"""

import json
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.dist import ROOT, commit_time, hashed

WORK = ROOT / "build" / "sbom"
# Ask for nothing but to be named.
PERMISSIVE = frozenset(
    (
        "0BSD",
        "Apache-2.0",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "MIT",
        "PSF-2.0",
        "Zlib",
    )
)
# Their own files stay under them, which memd neither contains nor changes.
LIBRARIES = frozenset(("LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0"))
# What older metadata calls a licence, and what metadata leaves out.
_CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: BSD License": "BSD",
    "License :: OSI Approved :: MIT License": "MIT",
}
_UNTOLD = {"protobuf": "BSD-3-Clause"}


def licences(component: Mapping[str, Any]) -> list[str]:
    """Return the licences of a component, as SPDX expressions where its metadata tells."""
    given = [
        entry.get("expression") or entry["license"].get("id") or entry["license"]["name"]
        for entry in component.get("licenses", ())
    ]
    untold = [_UNTOLD[component["name"]]] if component["name"] in _UNTOLD else []
    return list(dict.fromkeys(_CLASSIFIERS.get(name, name) for name in given or untold))


def compatible(expression: str) -> bool:
    """Return whether what is under an SPDX expression may go along; brackets are not understood."""
    return any(
        all(name in PERMISSIVE | LIBRARIES for name in re.split(r"\s+AND\s+", choice))
        for choice in re.split(r"\s+OR\s+", expression.strip())
    )


def problems(document: Mapping[str, Any]) -> list[str]:
    """Return the components of a document whose licence is unknown or may not go along."""
    found = {each["name"]: licences(each) for each in document["components"]}
    return [
        f"{name}: {', '.join(names) or 'no licence is told'}"
        for name, names in found.items()
        if not names or not all(map(compatible, names))
    ]


def main() -> int:
    """Write the document beside the wheel; 1 where a licence does not go with memd's."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ",".join(name for name in project["optional-dependencies"] if name != "dev")
    tool, described = WORK / "tool", WORK / "described"
    _environment(tool, "cyclonedx-bom")
    _environment(described, f"{wheel}[{extras}]")
    target = wheel.with_name("-".join(wheel.name.split("-")[:2]) + ".cdx.json")
    command = [str(tool / "bin" / "cyclonedx-py"), "environment", str(described)]
    options = ["--output-reproducible", "--pyproject", str(ROOT / "pyproject.toml")]
    environ = {"SOURCE_DATE_EPOCH": str(commit_time(ROOT)), "LC_ALL": "C.UTF-8"}
    subprocess.run([*command, *options, "-o", str(target)], env=environ, check=True)
    document = json.loads(target.read_text("utf-8"))
    for each in document["components"]:
        print(f"{each['name']} {each['version']}: {', '.join(licences(each))}")
    wrong = problems(document)
    print("\n".join([hashed(target), *(f"does not go with MIT: {line}" for line in wrong)]))
    return 1 if wrong else 0


def _environment(folder: Path, requirement: str) -> None:
    """Make an environment that has a requirement, and no pip that would be described too."""
    venv.create(folder, clear=True, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(folder)]
    options = ["install", "--quiet", "-c", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *options, requirement], check=True)


if __name__ == "__main__":  # pragma: no cover - run as a process
    sys.exit(main())
