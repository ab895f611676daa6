"""The shell script in docs/approvals/verify-by-hand.md does what it says, without this package."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from corpora.attacks.case_files import CORPUS

DOCUMENT = Path(__file__).parents[2] / "docs" / "approvals" / "verify-by-hand.md"
REFINEMENT = "tree/.GOV/refinements/WP-7-Fuel-Gauge-v2.md"

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="the script calls ssh-keygen")


def verify(case: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (script,) = re.findall(r"```sh verify\.sh\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    path = folder / "verify.sh"
    path.write_text(script)
    (envelope,) = (CORPUS / case / "attestations").iterdir()
    files = [envelope, CORPUS / case / "policy" / "allowed_signers", CORPUS / case / REFINEMENT]
    command = ["sh", str(path), *(str(file) for file in files)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "case",
    ["genuine-ssh-ed25519", "genuine-ssh-rsa", "genuine-ecdsa-sha2-nistp521", "genuine-sk-ecdsa-sha2-nistp256"],
)
def test_the_script_accepts_a_genuine_approval_and_says_what_was_said(case: str, tmp_path: Path) -> None:
    done = verify(case, tmp_path)
    assert done.returncode == 0, done.stderr
    assert 'Good "workpacket-approval@v1" signature for alice@example.org' in done.stdout
    predicate = json.loads(done.stdout.splitlines()[-1])["predicate"]
    assert [predicate[key] for key in ("decision", "packet", "gate", "expiresAt")] == [
        *("approve", "WP-7-Fuel-Gauge-v2", "activation", "2026-03-23T12:00:00Z")
    ]


@pytest.mark.parametrize(
    ("case", "complaint"),
    [
        ("one-byte-more", "the file is not the one approved"),
        ("file-edited-in-place", "the envelope was edited or renamed"),
        ("payload-edited", "incorrect signature"),
        ("signature-without-pae", "incorrect signature"),
        ("namespace-git", "namespace"),
        ("key-of-the-agent", "could not verify signature"),
        ("payload-type-edited", "the envelope has another form"),
        ("envelope-with-spaces", "the envelope has another form"),
        ("duplicate-key-in-envelope", "the envelope has another form"),
    ],
)
def test_the_script_refuses_an_attack(case: str, complaint: str, tmp_path: Path) -> None:
    done = verify(case, tmp_path)
    assert done.returncode != 0
    assert complaint.casefold() in (done.stdout + done.stderr).casefold()
