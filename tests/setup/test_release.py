"""What a release says of itself: notes of its version, checksums of its files, addresses that lead somewhere."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import release
from architecture.source_tree import ROOT
from docs.workflow_rules import faults
from workpacket import __version__

WORKFLOW = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
CHANGELOG = """# Changelog

## [Unreleased]

- Not yet.

## [0.2.0] - 2026-12-01

- New.

## [0.1.0]

## [0.0.1]
- Old.
"""


def test_the_notes_are_the_section_of_the_version() -> None:
    assert release.notes(CHANGELOG, "0.2.0") == "- New.\n"
    assert release.notes(CHANGELOG, "0.0.1") == "- Old.\n"


@pytest.mark.parametrize("version", ["0.1.0", "0.3.0", "0.2", "0x2.0"])
def test_a_version_without_notes_is_not_released(version: str) -> None:
    with pytest.raises(release.NotReleasable):
        release.notes(CHANGELOG, version)


def test_a_tag_releases_the_version_of_the_package_and_no_other() -> None:
    assert release.version_of("v0.2.0", '__version__ = "0.2.0"\n') == "0.2.0"
    for tag in ("0.2.0", "v0.2.1", "v0.2.0rc1", "main"):
        with pytest.raises(release.NotReleasable):
            release.version_of(tag, '__version__ = "0.2.0"\n')


def test_addresses_without_an_owner_are_not_released() -> None:
    release.check_addresses('Source = "https://example.org/ann/workpacket"')
    with pytest.raises(release.NotReleasable, match="OWNER"):
        release.check_addresses('Source = "https://example.org/OWNER/workpacket"')


def test_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tar.gz").write_bytes(b"sdist")
    assert release.main(["checksums", str(tmp_path)]) == 0
    assert release.main(["checksums", str(tmp_path)]) == 0
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in (("a.tar.gz", b"sdist"), ("b.whl", b"wheel"))}
    assert (tmp_path / release.SUMS).read_text() == "".join(f"{digest}  {name}\n" for name, digest in digests.items())


def test_the_bill_of_materials_names_the_version(tmp_path: Path) -> None:
    path = tmp_path / "bill.json"
    path.write_text('{"metadata": {"component": {"name": "workpacket"}}, "components": []}')
    assert release.main(["materials", str(path)]) == 0
    assert json.loads(path.read_text())["metadata"]["component"] == {"name": "workpacket", "version": __version__}


def test_the_workflow_publishes_what_the_session_made_and_asks_for_no_secret() -> None:
    steps = [step for job in yaml.safe_load(WORKFLOW)["jobs"].values() for step in job["steps"]]
    scripts = "\n".join(step.get("run", "") for step in steps)
    assert "tools/release.py notes" in scripts
    assert "nox package release" in scripts
    assert "secrets." not in WORKFLOW
    (removed,) = (
        set(re.findall(r"dist/(\S+)", step["run"])) for step in steps if step.get("run", "").startswith("rm ")
    )
    assert removed == {release.SUMS, "workpacket.cdx.json"}


def test_only_a_tag_gives_the_rights_of_a_release() -> None:
    assert list(faults("release.yml", WORKFLOW)) == []
    for trigger in ("pull_request:", 'push:\n    branches: ["**"]', "workflow_dispatch:"):
        wider = re.sub(r"on:\n  push:\n    tags: .*\n", f"on:\n  {trigger}\n", WORKFLOW)
        assert wider != WORKFLOW
        assert list(faults("release.yml", wider))


def test_the_extra_for_recipes_is_the_package_that_we_use_ourselves() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["project"]["optional-dependencies"]["just"][0] in project["dependency-groups"]["dev"]
