"""The fast way through plain documents: which documents take it, and that it gives what the full parser gives."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given

from text.markdown_documents import DOCUMENTS, IN_ONE_LINE_END, PLAIN, everything
from workpacket.text.blocks import MAX_NODES
from workpacket.text.markdown import fast_blocks, parse_blocks
from workpacket.text.source import Source

CANONICAL = """\
# Work Packet Stub: WP-1-Parser-v1

Rules:
- No coder starts from a stub.

---

## STUB_METADATA
- WP_ID: WP-1-Parser-v1
- SPEC_ANCHOR_CANDIDATES (Main Body, not Roadmap):
  - Spec 1.2: [HSK-1] tables | and pipes
    - deeper
* **Status:** STUB
[ ] no box
[CX-1] no link definition

| Field | Value |
|:------|------:|
| a     | b | c |
| short |

## TEST_PLAN
- RUN_COMMANDS:
  ```bash
  just check   # | not a table
  ```

  1) one
  2) two
~~~
\tindented by a tab
~~~
**Last words**
_emphasis_ and a lazy
line: the end. -- ::
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_canonical_document_takes_the_fast_way(line_end: str) -> None:
    source = Source("stub.md", CANONICAL.replace("\n", line_end))
    blocks = fast_blocks(source, 0, MAX_NODES)
    full = parse_blocks(source)

    assert blocks is not None
    assert isinstance(full, list)
    assert everything(blocks) == everything(full)


@pytest.mark.parametrize(
    "text",
    [
        "> quote",
        "<!-- comment -->",
        "Title\n===",
        "Title\n---",
        "- a\n  -",
        "[a]: /b",
        "[a\nb]: /c",
        "    code",
        "- a\n\n       code",
        "-     code",
        "1.     code",
        "-\ta",
        "1.\ta",
        "\ta",
        "- a\n\n \tb",
        "a\rb",
        "-\n\n- a",
        "words\n*",
        "a | b\n--|--",
        "- a | b\n|--|--|",
        "# a | b\n|--|--|",
        "```a | b\n|--|--|\n```",
        "a | b\n:-:|--",
        "| a | b |\n|---|",
        "| a |\n|-- -|",
        "| a |\n-\n",
        "| a |\n\t|---|",
        "| a |\n|---|\nb",
        "| a |\n|---|\n      | b |",
        "- words\n| a |\n|---|",
        "- ```\n\ta\n  ```",
        "-" + " -" * 15 + " a",
        "|" + "a|" * 300 + "\n|" + "-|" * 300 + "\n" + "| b |\n" * 300,
    ],
)
def test_what_is_not_plain_is_left_to_the_full_parser(text: str) -> None:
    assert fast_blocks(Source("file.md", text), 0, MAX_NODES) is None


def test_a_document_with_too_many_blocks_is_left_to_the_full_parser() -> None:
    source = Source("file.md", "- a\n" * 10)

    assert fast_blocks(source, 0, 21) is not None
    assert fast_blocks(source, 0, 20) is None


@given(DOCUMENTS)
def test_both_ways_give_the_same_blocks(text: str) -> None:
    assert_same(text)


@given(PLAIN)
def test_both_ways_give_the_same_blocks_of_nested_lists(text: str) -> None:
    assert_same(text)


@given(IN_ONE_LINE_END)
def test_both_ways_give_the_same_blocks_whatever_the_line_end(text: str) -> None:
    assert_same(text)


def assert_same(text: str) -> None:
    source = Source("file.md", text)
    fast = fast_blocks(source, 0, MAX_NODES)
    if fast is None:
        return
    full = parse_blocks(source)

    assert isinstance(full, list)
    assert everything(fast) == everything(full)


def test_the_fast_way_imports_nothing_heavy() -> None:
    """A check of one canonical file must not pay for a Markdown parser, nor for the machinery of dataclasses."""
    script = (
        "import sys; from workpacket.text.markdown import read_blocks; from workpacket.text.source import Source;"
        "from workpacket.text import blocks as read; blocks = read_blocks(Source('a.md', '# a\\n- b: c'));"
        "assert len(blocks) == 2; print(*{'markdown_it', 'dataclasses', 'typing', 'inspect'} & set(sys.modules))"
    )
    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, env=paths)

    assert done.stdout.split() == []
