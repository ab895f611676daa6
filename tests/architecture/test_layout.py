"""Where governance lies is said once, in `model/layout.py`: no other module spells a path below `.GOV`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.source_tree import PACKAGE, nodes, parsed, python_files
from workpacket.model.layout import ENVELOPE_SUFFIX, GOVERNANCE_FOLDER

LAYOUT = PACKAGE / "model" / "layout.py"


def spelled(tree: ast.Module) -> Iterator[str]:
    """The literals that are a path below `.GOV` or end as envelopes do. A sentence that mentions one is no path."""
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
            path = text == GOVERNANCE_FOLDER or text.startswith(f"{GOVERNANCE_FOLDER}/")
            if (path or text.endswith(ENVELOPE_SUFFIX)) and " " not in text:
                yield f"{node.lineno}: {text}"


def test_no_other_module_spells_a_path_of_governance() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{literal}"
        for path in python_files(PACKAGE)
        if path != LAYOUT
        for literal in spelled(parsed(path))
    ]
    assert found == [], "name the place in tools/workpacket/model/layout.py and import it"


@pytest.mark.parametrize(
    "code", ['x = ".GOV/log"', 'x = ".GOV"', 'x = f".GOV/log/{name}"', 'x = f"{digest}.dsse.json"']
)
def test_a_path_that_is_spelled_is_found(code: str) -> None:
    assert list(spelled(ast.parse(code)))


def test_a_sentence_that_mentions_a_path_is_left_alone() -> None:
    assert not list(spelled(ast.parse('""".GOV/log holds the events."""')))
