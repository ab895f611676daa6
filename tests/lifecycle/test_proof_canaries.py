"""What a proof prints, and what stands in the environment, never gets into git."""

from __future__ import annotations

import secrets
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from lifecycle.governed import Governed

NAME = "WP-1-Greeting-v1"
CASES = Path(__file__).with_name("proofs") / "canaries.txt"
# How each way of printing a file is written as a proof.
WAYS = {
    "stdout": "cat {}",
    "stderr": "sh -c 'cat {} >&2'",
    "failing": "sh -c 'cat {}; exit 3'",
    "killed": "sh -c 'cat {}; kill -9 $$'",
    "last of many lines": "sh -c 'seq 20000; cat {}'",
    "first of many lines": "sh -c 'cat {}; seq 20000'",
    "in one long line": 'sh -c \'seq 20000 | tr -d "\\n"; cat {} | tr -d "\\n"; seq 20000\'',
    "without a line feed": "sh -c 'tr -d \"\\n\" < {}'",
    "among bytes that are not UTF-8": 'sh -c \'printf "\\377\\376"; cat {}; printf "\\300"\'',
    "among control characters": 'sh -c \'printf "\\033[31m\\000"; cat {}; printf "\\033[0m"\'',
    "background": "sh -c '(sleep 0.1; cat {}) & cat {}'",
}


class Canary(NamedTuple):
    place: str
    way: str
    form: str
    marks: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.form.format(*self.marks)


def canaries() -> list[Canary]:
    lines = [line.split("\t") for line in CASES.read_text("utf-8").splitlines() if not line.startswith("#")]
    marks = [tuple(secrets.token_hex(12).upper() for _ in range(form.count("{}"))) for _, _, form in lines]
    return [Canary(place, way, form, mark) for (place, way, form), mark in zip(lines, marks, strict=True)]


def every_object(root: Path) -> bytes:
    """What is in every object of the repository, reachable or not."""
    command = ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch"]
    return subprocess.run(command, capture_output=True, check=True).stdout


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="the proofs are written for a POSIX shell")
def test_a_hundred_canaries_in_environment_and_output_get_into_no_git_object(
    governed: Governed, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nest, planted = tmp_path_factory.mktemp("nest"), canaries()
    assert len(planted) == 100
    proofs = []
    for number, canary in enumerate(planted):
        if canary.place == "environment":
            monkeypatch.setenv(canary.way, canary.text)
            proofs.append(f"1=printenv {canary.way}")
        else:
            (nest / str(number)).write_text(f"{canary.text}\n", "utf-8")
            proofs.append("2=" + WAYS[canary.way].replace("{}", str(nest / str(number))))
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    options = [word for proof in proofs for word in ("--prove", proof)]
    governed.done("submit", NAME, "--as", "coder", "--record-only", *options)
    governed.commit("proved")
    governed.done("submit", NAME, "--as", "coder", *options[:100], "--prove", "all=true")
    governed.commit("submitted")
    written = every_object(governed.root) + b"".join(governed.files().values())
    found = [canary.text for canary in planted if any(mark.encode() in written for mark in canary.marks)]
    assert not found, len(found)
