"""Whatever reads or writes names of lanes is told which lanes there are: a policy can add some.

The built-in lanes are the default of many functions, for documents on their own. In the program a call that leaves
them out would read a board, or judge a move, as if the policy had said nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from architecture.source_tree import PACKAGE, nodes, parsed, python_files

# How many arguments a call has that passes the lanes as its last one.
CALLS = {
    "TaskBoard": 2,
    "TraceabilityRegistry": 2,
    "board_cell": 3,
    "board_of": 3,
    "columns": 2,
    "empty_board": 1,
    "forward_command": 3,
    "forward_transition": 2,
    "is_legal": 4,
    "lane_named": 2,
    "leaving": 2,
    "move_unmet": 3,
    "read_document": 3,
    "registry_of": 3,
}
# Who may ask for the built-in lanes alone: an added lane is never finished, which is all that these ask, or a foreign
# vocabulary is translated.
BUILT_IN_ONLY = {
    "audit/tracing.py": "lane_of_token",
    "cli/show.py": "lane_of_token",
    "documents/role_progress.py": "lane_of_token",
    "lifecycle/gates.py": "lane_of_token",
    "lifecycle/starter_documents.py": "lanes_named",
    "temporal/worker.py": "lane_of_token",
}
CONSTANTS = {"LANES", "SECTIONS", "lane_of_token", "lanes_named"}


def forgotten(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in nodes(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            named = {keyword.arg for keyword in node.keywords}
            if len(node.args) < CALLS[node.func.id] and "lanes" not in named:
                yield node.lineno, node.func.id


def taken_for_granted(module: ast.Module) -> Iterator[str]:
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom) and node.module == "workpacket.model.lanes":
            yield from (name.name for name in node.names if name.name in CONSTANTS)


def test_every_call_says_which_lanes_there_are() -> None:
    found = {}
    for path in python_files(PACKAGE):
        name, module = path.relative_to(PACKAGE).as_posix(), parsed(path)
        granted = set(taken_for_granted(module)) - {BUILT_IN_ONLY.get(name, "")}
        if name != "model/lanes.py" and (granted or any(forgotten(module))):
            found[name] = [*forgotten(module), *granted]
    assert found == {}


def test_a_call_that_forgets_them_is_found() -> None:
    planted = "def f(facts):\n    return TaskBoard(facts.board), leaving(lane, lanes), is_legal(e, a, b, lanes=x)\n"
    assert list(forgotten(ast.parse(planted))) == [(2, "TaskBoard")]
    assert list(taken_for_granted(ast.parse("from workpacket.model.lanes import LANES, Lane\n"))) == ["LANES"]
