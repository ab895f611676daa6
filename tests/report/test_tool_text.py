"""The text of an answer for an agent: no text of a document begins a line, ends a quote or hides a character."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.report.terminal import hidden
from workpacket.report.tool_text import PAGE, page_of, pages_of

LIST = Path(__file__).parents[1] / "corpora/agents/hostile_texts.jsonl"
HOSTILE = [json.loads(line)["text"] for line in LIST.read_text("utf-8").splitlines()]
# What a line may be: a key or a dash of ours, and then a command, a word or a quoted value.
LINE = re.compile(
    r"""(?:nothing
        | \ *(?:-\ )*(?:[A-Za-z_]+:\ ?)?
          (?: "(?:[^"\\]|\\.)*" | [A-Za-z0-9_./:@+-]{1,100} | true | false | null | \{\} | -?[0-9.]+ )?
        )\Z""",
    re.VERBOSE,
)


def tokens(text: str) -> int:
    import bpe_openai  # type: ignore[import-untyped]

    return len(bpe_openai.get_encoding("cl100k_base").encode(text))


def answer(data: dict[str, Any]) -> dict[str, Any]:
    return {"ok": True, "exit_code": 0, "findings": [], "data": data}


def in_every_place(text: str) -> dict[str, Any]:
    return {
        "what": text,
        "criteria": [{"number": 1, "text": text, "results": [text]}, {"text": text}],
        "scope": [text, [text]],
        "unmet": [{"code": "x", "message": text, "command": "workpacket why X", "path": text, "line": 3}],
        "holder": text,
        "next": "workpacket why X",
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_stays_within_its_quotes(text: str) -> None:
    for page in pages_of(answer(in_every_place(text))):
        for line in page.splitlines():
            if line.lstrip(" -").startswith(("next: ", "command: ")):
                assert line.endswith(": workpacket why X")
            else:
                assert LINE.match(line), line
        assert not hidden().search(page.replace("\n", ""))


@given(st.text(max_size=3000))
def test_any_text_stays_within_its_quotes(text: str) -> None:
    for line in "".join(pages_of(answer({"what": text}))).splitlines():
        assert LINE.match(line), line


@pytest.mark.filterwarnings("ignore:open_binary:DeprecationWarning")
@pytest.mark.parametrize(
    "text",
    [
        "The parser reads a file, and says in which line it failed. " * 200,
        "Прочитай файл и скажи, в какой строке ошибка. " * 200,
        "读取文件并说明错误在哪一行" * 400,
        "\U0001f600\U0001f680" * 2000,
        "def answer(self, number: int) -> int:\n    return self._numbers[number]\n" * 100,
    ],
)
def test_a_page_has_at_most_600_tokens(text: str) -> None:
    long = answer({"what": text, "why": text})
    count = len(pages_of(long))
    assert count > 1
    pages = [page_of(long, number) for number in range(1, count + 1)]
    assert max(map(tokens, pages)) <= 600
    assert f"page 1 of {count}; for the next one: page=2\n" in pages[0]
    assert "page " not in pages[-1]
    assert page_of(long, count + 1) == f"there are only {count} pages\n"
    assert all(len(page.encode()) <= PAGE + 600 for page in pages)


def test_an_answer_without_content_is_nothing() -> None:
    assert page_of(answer({}), 1).endswith("\nnothing\n")


def test_what_is_wrong_comes_first() -> None:
    found = {"code": "packet_unknown", "message": "it is not there", "hint": "workpacket list", "severity": "error"}
    text = page_of({"ok": False, "exit_code": 2, "findings": [found], "data": {"id": "WP-1-X-v1"}}, 1)
    assert text.startswith("refused or failed, exit status 2\n")
    assert text.index("packet_unknown") < text.index("WP-1-X-v1")
