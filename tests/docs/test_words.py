"""Pages for newcomers use no word of the trade before it is explained.

A word of the glossary may stand on such a page once the page has explained it (**so**), has said that it stands in the
glossary (*so*, or a link to it), or was preceded by a page of its way that did.
"""

from __future__ import annotations

import re

import pytest

from architecture.source_tree import ROOT

GLOSSARY = ROOT / "docs" / "glossary.md"
# In the order in which somebody reads them: one way for each reader.
WAYS = (
    ("README.md", "docs/tutorials/light.md"),
    ("README.md", "docs/tutorials/orchestrator.md", "docs/tutorials/ci.md"),
    ("README.md", "docs/tutorials/orchestrator.md", "docs/tutorials/maintainer.md"),
)
# Words of those who wrote the program. Whoever begins has no use for them.
TRADE = (
    "attestation", "canonical", "DAG", "DSSE", "fold", "idempotent", "in-toto", "invariant", "linearizable",
    "monotonic", "namespace", "nonce", "principal", "projection", "quorum", "SSHSIG", "transaction", "upcast",
)  # fmt: skip
# Words of the glossary that are ordinary words as well, and understood without it.
ORDINARY = {"approval", "effect", "evidence", "run", "step", "log", "policy", "finding", "claim", "checkpoint", "base"}
CODE = re.compile(r"^```.*?^```$|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.MULTILINE | re.DOTALL)


def glossary() -> dict[str, str]:
    entries = re.findall(r"^- \*\*(.+?)\*\*: (.*(?:\n  .*)*)", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    return {word: " ".join(meaning.split()) for word, meaning in entries}


def unexplained(text: str, known: set[str]) -> list[str]:
    """Words used before they are explained; what the page explains is added to `known`."""
    prose = CODE.sub(" ", text)
    found = []
    for word in sorted(glossary().keys() - ORDINARY, key=len, reverse=True):
        explained = re.search(rf"\*{word}s?\*", prose, re.IGNORECASE)
        used = re.search(rf"(?<!\*)(?<!task )(?<!work )\b{word}s?\b(?!\*)", prose, re.IGNORECASE)
        if word not in known and used and (explained is None or used.start() < explained.start()):
            found.append(word)
        if explained:
            known.add(word)
    return found


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way[-1])
def test_no_word_is_used_before_it_is_explained(way: tuple[str, ...]) -> None:
    known: set[str] = set()
    assert {page: unexplained((ROOT / page).read_text("utf-8"), known) for page in way} == {page: [] for page in way}


@pytest.mark.parametrize("page", sorted({page for way in WAYS for page in way}))
def test_pages_for_newcomers_do_without_words_of_the_trade(page: str) -> None:
    prose = CODE.sub(" ", (ROOT / page).read_text("utf-8"))
    assert [word for word in TRADE if re.search(rf"\b{word}s?\b", prose, re.IGNORECASE)] == []


def test_the_glossary_is_in_order_and_explains_each_word_in_a_sentence() -> None:
    words = glossary()
    assert list(words) == sorted(words)
    assert len(words) == GLOSSARY.read_text("utf-8").count("\n- ")
    assert all(meaning.endswith(".") for meaning in words.values())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The drift is undone.", ["drift"]),
        ("A *drift* is a hand edit. The drift is undone.", []),
        ("The drift is undone. A *drift* is a hand edit.", ["drift"]),
        ("Type `board drift`.", []),
    ],
)
def test_a_word_that_comes_too_early_is_found(text: str, found: list[str]) -> None:
    assert unexplained(text, set()) == found
