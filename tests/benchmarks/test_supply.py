"""What is installed: pinned by hash, of no registry in particular, known licences, and advisories read as they are."""

import re
from email.message import Message
from pathlib import Path

import pytest

from benchmarks.audit import Unreachable, banner, pin_of, read
from benchmarks.licences import judge, licence_of, locked

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = ("requirements.txt", "requirements-dev.txt", "requirements-rehearsal.txt")


def packages(text: str) -> list[str]:
    """Each package with its hashes, as pip reads continued lines."""
    return [line for line in text.replace("\\\n", "").splitlines() if re.match("[a-z0-9]", line)]


@pytest.mark.parametrize("name", FILES)
def test_each_package_is_pinned_by_hash_and_no_registry_is_named(name: str) -> None:
    text = (ROOT / name).read_text()
    assert packages(text)
    assert [line for line in packages(text) if "==" not in line or "--hash=sha256:" not in line] == []
    assert "://" not in text
    assert not re.search("^--?(index|extra|find|trusted)", text, re.MULTILINE)


def test_the_shop_is_pinned_the_same_in_every_file() -> None:
    shop, development = (set(map(hashless, packages((ROOT / name).read_text()))) for name in FILES[:2])
    assert shop <= development


def hashless(line: str) -> str:
    return line.partition(" --hash")[0].strip()


def test_a_pin_is_cut_out_with_all_its_hashes() -> None:
    locked_text = "a==1 \\\n    --hash=sha256:0\nb==2 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n    # a\nc==3\n"
    assert pin_of("b", locked_text) == "b==2 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n"
    with pytest.raises(LookupError):
        pin_of("d", locked_text)


def test_a_vulnerability_is_found_and_a_database_that_knows_nothing_is_no_clean_bill() -> None:
    clean = {"name": "a", "version": "1", "vulns": []}
    bad = {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"], "aliases": []}]}
    skipped = {"name": "c", "skip_reason": "not found"}
    findings = read({"dependencies": [clean, bad, skipped]})
    assert list(findings.vulnerable) == ["b 2: X-1, mended in 3"]
    assert (list(findings.unknown), findings.packages) == (["c"], 3)
    with pytest.raises(Unreachable):
        read({"dependencies": [skipped]})
    assert "NOT AUDITED" in banner("why")


@pytest.mark.parametrize(
    ("package", "licence", "is_agreed"),
    [
        ("a", "MIT", True),
        ("a", "Apache-2.0 AND BSD-2-Clause", True),
        ("a", "GPL-3.0-only OR MIT", True),
        ("a", "GPL-3.0-only AND MIT", False),
        ("a", "GPL-2.0-or-later", False),
        ("mysqlclient", "GPL-2.0-or-later", True),
        ("mysqlclient", "AGPL-3.0-only", False),
        ("a", "My own", False),
        ("a", "", False),
    ],
)
def test_only_permissive_licences_and_those_agreed_to_pass(package: str, licence: str, *, is_agreed: bool) -> None:
    assert (judge(package=package, licence=licence).trouble == "") is is_agreed


def test_a_licence_is_read_from_whichever_field_names_it() -> None:
    package = Message()
    assert licence_of(package) == ""
    package["Classifier"] = "License :: OSI Approved :: BSD License"
    package["License"] = "Dual License"
    assert licence_of(package) == "BSD License"
    package["License-Expression"] = "MIT"
    assert licence_of(package) == "MIT"


def test_what_is_locked_is_read_without_hashes() -> None:
    assert any(line.startswith("django==5.2.") and "hash" not in line for line in locked())
