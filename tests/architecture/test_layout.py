"""Where governance lies, and how large its files may be, is said once, in `model/layout.py`."""

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


# Modules with a size of something else than a file of the repository.
OTHER_SIZES = {
    "cli/foreign_forms.py": "a key of CI, which is outside of the repository",
    "cli/live_server.py": "a request of a browser",
    "documents/register_table.py": "how much text is searched at once",
    "lifecycle/policy.py": "the output of a proof",
    "shell/governing/contract_proofs.py": "the report of a test runner",
    "shell/governing/proof_process.py": "a piece of the output of a proof",
    "shell/one_shot_page.py": "the answer of a browser",
    "temporal/payloads.py": "a value sent to Temporal",
}


def sizes(tree: ast.Module) -> Iterator[str]:
    """The products with 1024 in a module: sizes in bytes."""
    for node in nodes(tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
            continue
        if any(isinstance(side, ast.Constant) and side.value == 1024 for side in (node.left, node.right)):
            yield f"{node.lineno}: {ast.unparse(node)}"


def test_no_other_module_limits_the_size_of_a_file() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): [*sizes(parsed(path))]
        for path in python_files(PACKAGE)
        if path != LAYOUT and "runtime" not in path.relative_to(PACKAGE).parts
    }
    limiting = {name: places for name, places in found.items() if places}
    assert {name: places for name, places in limiting.items() if name not in OTHER_SIZES} == {}, (
        "name the size in tools/workpacket/model/layout.py and import it"
    )
    assert OTHER_SIZES.keys() - limiting.keys() == set()
