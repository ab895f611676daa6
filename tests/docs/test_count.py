"""What `just count` counts."""

from __future__ import annotations

import ast

from architecture.source_tree import ROOT
from count import Lines, class_names, count_lines, function_lengths, imports

MODULE = '''"""A module.

Its second paragraph."""

# why
class A:
    """One line."""

    x = "#"  # behind code

def f():
    return """no docstring

    # and no comment"""
'''


def test_a_line_is_of_one_sort() -> None:
    assert count_lines(MODULE) == Lines(total=14, blank=4, docstring=4, comment=1)
    assert count_lines(MODULE).code == 5


def test_functions_and_classes_are_found() -> None:
    module = ast.parse(MODULE)

    assert list(function_lengths(module)) == [4]
    assert class_names(module) == ["A"]


def test_modules_are_counted_in_a_process_of_their_own() -> None:
    counted = imports(ROOT / "tools")

    assert all(number > 10 for number in counted.values()), counted
