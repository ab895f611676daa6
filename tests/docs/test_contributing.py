"""The complete examples of CONTRIBUTING work with the code as it is."""

from __future__ import annotations

import ast
import builtins
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from architecture.source_tree import ROOT
from rules.archive import read_case
from workpacket.cli import overview
from workpacket.documents.document import Document
from workpacket.rules.rule import DocumentRule
from workpacket.text.schema import SchemaSet
from workpacket.text.source import Source

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
CASE = ".GOV/retros/WP-1-Parser-v1.yaml"


def block(language: str, saying: str) -> str:
    """The fenced block in this language that has these words."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    (only,) = [each for each in found if saying in each]
    return str(only)


def test_the_kind_of_the_example_is_read_judged_and_described(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader, rules = (ModuleType(f"workpacket.{layer}.retro") for layer in ("documents", "rules"))
    for module, saying in ((reader, "class Retro"), (rules, "class LessonRepeated")):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(compile(block("python", saying), module.__name__, "exec"), vars(module))
    (tmp_path / "bad.txt").write_text(block("text", "expect: .GOV/retros"), "utf-8")
    case = read_case(tmp_path / "bad.txt")
    source = Source.from_bytes(CASE, case.files[CASE])
    document = vars(reader)["Retro"](source)
    assert document.faults == ()
    rule: DocumentRule[Document] = vars(rules)["LessonRepeated"]()
    found = [(CASE, *source.line_and_column(problem.start)) for problem in rule.check(document)]
    assert found == list(case.expected)

    schema = block("json", "Retrospective")
    schemas = SchemaSet(lambda name: schema.encode() if name == "retro" else common(name))
    (example,) = json.loads(schema)["examples"]
    assert list(schemas.violations("retro", example)) == []
    assert [each.code for each in schemas.violations("retro", {"wp_id": "x", "lessons": []})] == ["field_value"] * 2


def common(name: str) -> bytes:
    return (ROOT / "schemas" / f"{name}.schema.json").read_bytes()


def test_the_command_of_the_example_uses_what_its_module_has() -> None:
    (function,) = ast.parse(block("python", "_show_unheld")).body
    bound = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)} - bound - {"arguments"}
    assert used - vars(overview).keys() - vars(builtins).keys() - {"Arguments", "Output"} == set()
    answer = json.loads(block("json", "unheld.schema.json"))
    shared = json.loads((ROOT / "schemas" / "commands" / "common.schema.json").read_bytes())["$defs"]
    assert {"failed", "packet"} <= shared.keys()
    assert [form["$ref"] for form in answer["anyOf"]] == ["#/$defs/shown", "common.schema.json#/$defs/failed"]
