"""docs/approvals/format.md says what the code does, as far as that can be compared."""

from __future__ import annotations

import json
import re
from pathlib import Path

from approvals.gates import envelope, statement
from workpacket.approvals.envelope import DECISIONS, DEFAULT_VALIDITY, PAYLOAD_TYPE, PREDICATE_TYPE, STATEMENT_TYPE, pae
from workpacket.approvals.fields import LONGEST_VALIDITY
from workpacket.approvals.keys import LARGEST_RSA, RSA_EXPONENT, SMALLEST_RSA
from workpacket.approvals.policy import HARDWARE, LEGACY_WORDS, PARTIES
from workpacket.approvals.sshsig import NAMESPACE

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "approvals" / "format.md").read_text("utf-8")


def test_every_key_of_a_statement_is_described_and_no_other() -> None:
    (table,) = re.findall(r"## The statement\n.*?\n(\|.*?)\n\n", TEXT, re.DOTALL)
    firsts = [row.split("|")[1] for row in table.splitlines()[2:]]
    described = {name.rpartition(".")[2] for first in firsts for name in re.findall(r"`([^`]+)`", first)}
    document = json.loads(statement().payload())
    assert described == set(document) - {"predicate"} | set(document["predicate"])


def test_the_example_of_an_envelope_has_its_keys() -> None:
    (example,) = re.findall(r"```json\n(.*?)\n```", TEXT)
    assert json.loads(example).keys() == json.loads(envelope().data).keys()


def test_constants_are_those_of_the_code() -> None:
    constants = [STATEMENT_TYPE, PREDICATE_TYPE, PAYLOAD_TYPE, NAMESPACE, LEGACY_WORDS, *DECISIONS, *HARDWARE, *PARTIES]
    assert [constant for constant in constants if constant not in TEXT] == []
    assert f"{SMALLEST_RSA} to {LARGEST_RSA} bits and exponent {RSA_EXPONENT}" in TEXT
    assert f"{DEFAULT_VALIDITY.days} days apart by default, {LONGEST_VALIDITY.days} at most" in TEXT
    assert pae(b"").decode().removesuffix("0 ") in TEXT


def test_what_shows_a_requirement_of_aisvs_is_there() -> None:
    rows = re.findall(r"^\| (9\.2\.\d+) .*\| ([^|]+) \|$", TEXT, re.MULTILINE)
    assert [number for number, _ in rows] == ["9.2.1", "9.2.2", "9.2.8", "9.2.9"]
    shown = [path for _, paths in rows for path in re.findall(r"`([^`]+)`", paths)]
    assert [path for path in shown if not (ROOT / path).exists()] == []
