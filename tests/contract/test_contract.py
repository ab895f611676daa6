"""The contract is what the format page says: golden vectors, and no byte that matters is missed."""

from __future__ import annotations

import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.packet import Packet
from workpacket.documents.refinement import Refinement
from workpacket.documents.stub import Stub
from workpacket.lifecycle.contract import ContractUnreadable, contract_of
from workpacket.text.source import Source

WP = "WP-1-Parser-v1"
STUB_PATH, PACKET_PATH = f".GOV/task_packets/stubs/{WP}.md", f".GOV/task_packets/{WP}.md"
REFINEMENT_PATH = f".GOV/refinements/{WP}.md"
VECTORS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("vectors.json").read_text("utf-8"))


@cache
def refinement_of(text: str) -> Refinement:
    return Refinement(Source(REFINEMENT_PATH, text))


def digest_of(path: str, text: str, refinement: str | None = None) -> str:
    """The digest, or '' where the document has no contract."""
    kind = Stub if "/stubs/" in path else Packet
    pinned = refinement_of(refinement) if refinement is not None else None
    try:
        return contract_of(kind(Source(path, text)), pinned).digest
    except ContractUnreadable:
        return ""


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_a_document_has_the_canonical_form_of_its_vector(vector: dict[str, Any]) -> None:
    kind = Stub if "/stubs/" in vector["path"] else Packet
    document = kind(Source(vector["path"], vector["document"]))
    refinement = None
    if vector["refinement"] is not None:
        refinement = Refinement(Source(REFINEMENT_PATH, vector["refinement"]))
    if "error" in vector:
        with pytest.raises(ContractUnreadable, match=re.escape(vector["error"])):
            contract_of(document, refinement)
        return
    contract = contract_of(document, refinement)
    assert contract.encode().decode() == vector["canonical"]
    assert contract.digest == vector["digest"] == hashlib.sha256(vector["canonical"].encode()).hexdigest()


def test_vectors_that_say_the_same_have_one_digest() -> None:
    digests = {vector["name"]: vector.get("digest") for vector in VECTORS}
    stub = digests["a stub and its refinement"]
    same = [name for name, digest in digests.items() if digest == stub]
    assert len(same) == 5
    assert digests["composed characters"] == digests["composed and decomposed characters are the same"]


WORDS = ["reads", "every byte", "`src/a.py`", "*now*", "[x](y)", "<!-- z -->", "- 3", "1986. was", "caf\u00e9", "a: b"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
LINES = st.lists(TEXTS, min_size=0, max_size=3)
MARKERS = st.sampled_from(["- ", "* ", "+ ", "1. ", "- [ ] ", "- [x] ", "  - "])


@st.composite
def packets(draw: st.DrawFn) -> str:
    """A packet in which every line between `<<` and `>>` is covered; the marks are taken out by `covered_and_text`."""

    def items(lines: list[str], indent: str = "") -> str:
        return "\n".join(f"{indent}{draw(MARKERS)}{line}" for line in lines)

    scope = [
        f"- What: <<{draw(TEXTS)}\n" + items(draw(LINES), "  ") + ">>",
        f"- **Why:** <<{draw(TEXTS)}\n\n  {draw(TEXTS)}>>",
        "- OUT_OF_SCOPE:\n<<" + items(draw(LINES), "  ") + ">>",
        "- SCOPE_OF_STUB:\n<<" + items(draw(LINES), "  ") + ">>",
        "- NOTES: nothing that counts",
    ]
    criteria = [
        "### TEST_PLAN\nnothing that counts",
        "### DONE_MEANS\n<<" + items(draw(LINES)) + f"\n\n{draw(TEXTS)}>>",
    ]
    return "\n".join(
        [
            f"# Task Packet: {WP}\n\n## METADATA\n- WP_ID: {WP}\n- **Status:** Ready for Dev\n",
            "## SCOPE",
            *draw(st.permutations(scope)),
            "\n## QUALITY_GATE",
            *draw(st.permutations(criteria)),
            "\n## SKELETON\nnothing that counts",
            "\n## EVIDENCE_MAPPING\n- nothing that counts\n",
        ]
    )


def covered_and_text(marked: str) -> tuple[set[int], str]:
    """Where what is covered stands, and the packet without the marks."""
    covered: set[int] = set()
    text, inside = "", False
    for part in re.split(r"(<<|>>)", marked):
        if part in {"<<", ">>"}:
            inside = part == "<<"
            continue
        if inside:
            covered |= set(range(len(text), len(text) + len(part)))
        text += part
    return covered, text


@given(packets(), st.integers(min_value=0))
def test_every_changed_letter_changes_the_digest_or_is_free(marked: str, at: int) -> None:
    """`What is free`, 9: sections and fields that the table does not name; all letters elsewhere count."""
    covered, text = covered_and_text(marked)
    letters = [place for place, character in enumerate(text) if character.isalpha() and not _is_box(text, place)]
    place = letters[at % len(letters)]
    changed = text[:place] + ("z" if text[place] != "z" else "k") + text[place + 1 :]
    before = digest_of(PACKET_PATH, text)
    assert before
    if place in covered:
        assert digest_of(PACKET_PATH, changed) != before
    elif "nothing that counts" in text[place - 19 : place + 19]:
        assert digest_of(PACKET_PATH, changed) == before


def _is_box(text: str, place: int) -> bool:
    return text[place - 1 : place + 2] in {"[x]", "[X]"}


@pytest.mark.share(5)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize(
    "name",
    [
        "a stub and its refinement",
        "the packet of that stub says the same contract",
        "evidence that is demanded below a criterion",
        "nested lists, paragraphs and fences are kept",
    ],
)
def test_every_byte_of_a_vector_counts_or_is_free(name: str, first: int) -> None:
    """Each fourth letter is replaced in turn; where the digest stays, the line is one that the page calls free."""
    vector = next(vector for vector in VECTORS if vector["name"] == name)
    text, path = vector["document"], vector["path"]
    free: set[str] = set()
    for place in range(first, len(text), 4):
        character = text[place]
        if not character.isalnum() or _is_box(text, place):
            continue
        changed = text[:place] + ("z" if character != "z" else "k") + text[place + 1 :]
        if digest_of(path, changed, vector["refinement"]) == vector["digest"]:
            free.add(_where(text, place))
    assert free <= FREE_PLACES, free - FREE_PLACES


def test_every_letter_of_a_light_packet_counts() -> None:
    """Nothing in it is progress: notes are a section of their own."""
    vector = next(vector for vector in VECTORS if vector["name"] == "a packet in the light form")
    text, path = vector["document"], vector["path"]
    for place in (place for place, character in enumerate(text) if character.isalnum()):
        changed = text[:place] + ("z" if text[place] != "z" else "k") + text[place + 1 :]
        assert digest_of(path, changed) != vector["digest"], text[max(place - 20, 0) : place + 20]
    assert digest_of(path, text + "\n## NOTES\n- Seen.\n") == vector["digest"]


def _where(text: str, place: int) -> str:
    """The section, and in sections of fields the key, of what is at a place."""
    before = text[: text.find("\n", place) if "\n" in text[place:] else len(text)].split("\n")
    start = next((index for index in reversed(range(len(before))) if re.match(r"##? ", before[index])), 0)
    section, own = before[start], before[start + 1 :]
    key = next((m[1] for line in reversed(own) if (m := re.match(r"(?:- (?:\*\*)?|#{3} )([A-Za-z_]+)", line))), "")
    name = re.sub(r"^#+ ", "", section).split(" (")[0]
    return f"{name}: {key}" if name in {"SCOPE", "QUALITY_GATE", "METADATA", "STUB_METADATA"} else name


FREE_PLACES = {
    *("METADATA: TASK_ID", "METADATA: BASE_WP_ID", "METADATA: DATE", "METADATA: REQUESTOR", "METADATA: AGENT_ID"),
    *(
        "METADATA: ROLE",
        "METADATA: AGENTIC_MODE",
        "METADATA: Status",
        "METADATA: USER_SIGNATURE",
        "METADATA: RISK_TIER",
    ),
    *("METADATA: PACKET_FORMAT_VERSION", "METADATA: WP_ID", "METADATA: "),
    *("STUB_METADATA: WP_ID", "STUB_METADATA: "),
    *("STUB_METADATA: BASE_WP_ID", "STUB_METADATA: CREATED_AT", "STUB_METADATA: STUB_STATUS"),
    *("STUB_METADATA: SPEC_TARGET", "STUB_METADATA: ROADMAP_POINTER", "STUB_METADATA: SPEC_ANCHOR_CANDIDATES"),
    *("QUALITY_GATE: TEST_PLAN", "QUALITY_GATE: ROLLBACK_HINT", "QUALITY_GATE: just", "QUALITY_GATE: git"),
    *("SCOPE: IN_SCOPE_PATHS", "SCOPE: SCOPE_OF_STUB", f"Task Packet: {WP}", f"Work Packet Stub: {WP}"),
    *("TASK_PACKET_STUB_TEMPLATE", "RISKS / UNKNOWNs", "ACTIVATION_CHECKLIST", "DEPENDENCIES / BLOCKERS"),
    *("SUB_AGENT_DELEGATION", "TECHNICAL_REFINEMENT", "WAIVERS GRANTED", "AUTHORITY", "LINEAGE_AUDIT", "BOOTSTRAP"),
    *("SKELETON", "END_TO_END_CLOSURE_PLAN", "IMPLEMENTATION", "HYGIENE", "VALIDATION", "STATUS_HANDOFF"),
    *("EVIDENCE_MAPPING", "EVIDENCE", "VALIDATION_REPORTS", ""),
}


def test_markdown_that_cannot_be_read_has_no_contract() -> None:
    assert digest_of(PACKET_PATH, "> " * 5000 + "- What: Read\n") == ""
