"""What is wrong in a document is wrong in it however its lines end: a fault does not hide behind those of Windows."""

from __future__ import annotations

from functools import cache

import pytest

from rules.archive import read_case
from rules.canonical import CANONICAL
from rules.test_cases import BAD
from workpacket.documents.places import kind_of
from workpacket.documents.structured import evidence_blocks
from workpacket.shell.checking import examine_bytes, load_findings
from workpacket.text.source import Source

ENDS = {"Windows": "\r\n", "an old Macintosh": "\r"}
ABOUT_LINE_ENDS = {"line_ends", "blank_lines_at_end"}
BLOCK = "- COMMAND: `just test`\n  - EXIT_CODE: 0\n  - LOG_PATH: `logs/a.log`\n- PROOF_LINES: 3 passed\n"


@cache  # each document is read as it stands for all line ends
def said_of(path: str, kind: str, data: bytes) -> frozenset[tuple[str, int, int, str]]:
    found = load_findings(path, examine_bytes(path, kind, data).findings)
    return frozenset((one.code, one.line, one.column, one.message) for one in found if one.code not in ABOUT_LINE_ENDS)


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_all_that_is_said_of_a_document_is_said_of_it_with_other_line_ends(end: str) -> None:
    documents = [(path, text.encode()) for path, text in CANONICAL.values()]
    documents += [one for case in BAD for one in read_case(case).files.items()]
    tried = 0
    for path, data in documents:
        kind = kind_of(path)
        if kind is None or b"\r" in data or path.endswith(".toml"):  # TOML has lines of its own
            continue
        tried += 1
        assert said_of(path, kind, data.replace(b"\n", end.encode())) == said_of(path, kind, data), (path, data)
    assert tried > 200


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_evidence_is_read_however_lines_end(end: str) -> None:
    text = BLOCK.replace("\n", end)
    (block,) = evidence_blocks(Source("a.md", text), 0, len(text))
    assert {key: value.value for key, value in block.fields.items()} == {
        "COMMAND": "just test", "EXIT_CODE": "0", "LOG_PATH": "logs/a.log", "PROOF_LINES": "3 passed"
    }  # fmt: skip
