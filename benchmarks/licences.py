"""The licences of what the shop is installed with, in var/licences.md. Ends with 1 at one nobody has agreed to."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "var" / "licences.md"
# Ask for a notice and nothing else.
PERMISSIVE = frozenset({"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "PSF-2.0", "ISC"})
# What packages write that know no SPDX expressions.
CALLED = {
    "MIT License": "MIT",
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "New BSD": "BSD-3-Clause",
    "BSD 3-Clause": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
}
# Copyleft that somebody has thought about: of this package, under this licence, for this reason.
AGREED = {
    ("mysqlclient", "GPL-2.0-or-later"): (
        "installed beside the shop and loaded unchanged; BSD-3-Clause may stand beside it. Who hands an image to others"
        " hands them mysqlclient's source with it."
    ),
    (
        "certifi",
        "MPL-2.0",
    ): "a list of certificates, used unchanged; only changes to it would have to be given",
    ("python-crontab", "LGPLv3"): "a library that django-celery-beat loads, used unchanged and replaceable",
}
VAGUE = frozenset({"Dual License", "UNKNOWN"})
LONGEST_NAME = 60  # Longer than this the field holds the text of a licence, not its name.


@dataclass(frozen=True, kw_only=True)
class Licensed:
    """A package and what it may be used under; `trouble` is "" when that is agreed."""

    package: str
    licence: str
    trouble: str
    reason: str = ""


def main() -> int:
    """Write the list, print what is not agreed, and return the exit status."""
    found = [judge(package=name, licence=licence_of(read(name))) for name in installed(locked())]
    LIST.parent.mkdir(exist_ok=True)
    LIST.write_text("".join(_lines(found)))
    troubles = [f"licences: {each.package}: {each.trouble}" for each in found if each.trouble]
    print("\n".join(troubles) or f"licences: {len(found)} packages, all agreed; {LIST.relative_to(ROOT)}")
    return 1 if troubles else 0


def locked() -> list[str]:
    """Return the requirements that requirements.txt pins, without their hashes."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return [line.removesuffix("\\").strip() for line in lines if re.match("[a-z0-9]", line)]


def installed(requirements: list[str]) -> Iterator[str]:
    """Yield the names of those that this interpreter wants."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate():
            yield requirement.name


def read(package: str) -> Message:
    """Return what an installed package says of itself."""
    return message_from_string(distribution(package).read_text("METADATA") or "")


def licence_of(package: Message) -> str:
    """Return the SPDX expression where a package has one, else its own words; "" when it has none."""
    if expression := package.get("License-Expression"):
        return expression
    kinds = [kind.rpartition(" :: ")[2] for kind in package.get_all("Classifier", []) if kind.startswith("License")]
    name = package.get("License") or ""
    if name and len(name) <= LONGEST_NAME and name not in VAGUE:
        return name
    return " AND ".join(kinds)


def is_permissive(licence: str) -> bool:
    """Tell whether an expression can be met by permissive licences alone."""
    ways = licence.replace("(", "").replace(")", "").split(" OR ")
    return any(all(CALLED.get(part, part) in PERMISSIVE for part in way.split(" AND ")) for way in ways)


def judge(*, package: str, licence: str) -> Licensed:
    """Say what is wrong with a package's licence, if anything is."""
    if not licence:
        return Licensed(package=package, licence="unknown", trouble="it names no licence: read its source")
    if is_permissive(licence):
        return Licensed(package=package, licence=licence, trouble="")
    if reason := AGREED.get((package, licence)):
        return Licensed(package=package, licence=licence, trouble="", reason=reason)
    return Licensed(package=package, licence=licence, trouble=f"nobody has agreed to {licence}, see AGREED")


def _lines(found: list[Licensed]) -> Iterator[str]:
    yield "# Licences of what the shop is installed with\n\n| package | licence | |\n|---|---|---|\n"
    for each in found:
        yield f"| {each.package} | {each.licence} | {each.trouble or each.reason} |\n"


if __name__ == "__main__":
    sys.exit(main())
