"""A kind of document is complete: it has places, a reader, a schema and rules can see it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

import pytest
from hypothesis import given
from hypothesis import strategies as st

from architecture.source_tree import ROOT
from rules.archive import read_case
from workpacket import rules
from workpacket.documents.document import KINDS, Document, DocumentKind, reader_of
from workpacket.documents.places import PLACES, ROOTS, kind_of
from workpacket.report.catalogue import catalogue
from workpacket.rules.rule import DocumentRule, ReferenceRule, Rule, all_rules, rules_for, rules_in
from workpacket.rules.settings import CheckSettings, grade
from workpacket.shell.checking import examine_bytes, load_findings, unreadable_finding
from workpacket.shell.tree import find_documents

BY_NAME = {kind.name: kind for kind in KINDS}
READING = "KINDS in tools/workpacket/documents/document.py"
RULES = "tools/workpacket/rules"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_reader_of_its_name(kind: DocumentKind) -> None:
    name = kind.module or kind.name
    there = find_spec(f"workpacket.documents.{name}") is not None
    assert there, f"write its reader in tools/workpacket/documents/{name}.py, or name its module in {READING}"
    reader = getattr(importlib.import_module(f"workpacket.documents.{name}"), kind.reader, None)
    assert reader is not None, f"write the class {kind.reader} in tools/workpacket/documents/{name}.py"
    assert issubclass(reader, Document)
    assert reader.kind == kind.name, f"write `kind` in {kind.reader}, or correct its name in {READING}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_schema_with_examples(kind: DocumentKind) -> None:
    path = ROOT / "schemas" / f"{kind.name}.schema.json"
    assert path.is_file(), f"write schemas/{path.name} (see schemas/README.md)"
    schema = json.loads(path.read_bytes())
    missing = [key for key in ("title", "description", "examples") if not schema.get(key)]
    assert missing == [], f"write them in schemas/{path.name}"


# Modules of rules that are about several kinds.
SHARED_RULES = {"structured", "identity", "scope_paths"}
# A kind may be in these lists, with its reason. What a JSON Schema alone says, and what only points to another file.
WITHOUT_RULES = {"spec_pointer", "batch_dependencies", "batch_validation"}
# Nothing else in the repository needs to know what they hold.
WITHOUT_SUMMARY = {"policy"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_names_the_modules_of_its_rules_and_no_others(kind: DocumentKind) -> None:
    reader = reader_of(kind.name)
    wanted = {rule for rule in all_rules() if judges(rule, reader)}
    unnamed = {rule.__module__.rpartition(".")[2] for rule in wanted - set(rules_for(kind.name))}
    assert unnamed == set(), f"rules of these modules apply to {reader.__name__}: name them in its line of {READING}"
    useless = [name for name in kind.rules if wanted.isdisjoint(rules_in(name))]
    assert useless == [], f"no rule of these modules is about {kind.name}: take them out of its line of {READING}"
    own = set(kind.rules) - SHARED_RULES
    where = f"{RULES}/{kind.name}.py"
    assert own or kind.name in WITHOUT_RULES, f"write rules for it in {where}, and name that module in {READING}"


@cache
def sound_kinds() -> frozenset[str]:
    """The kinds of which a document in the good cases of the rules has no error."""
    found = set()
    for case in sorted((ROOT / "tests/rules/cases").glob("*/good*.txt")):
        for path, data in read_case(case).files.items():
            kind = kind_of(path)
            if kind is not None and kind not in found:
                problems = load_findings(path, examine_bytes(path, kind, data).findings)
                graded = grade(problems, catalogue(), CheckSettings())[0]
                found |= {kind} if all(one.severity != "error" for one in graded) else set()
    return frozenset(found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_good_case_in_which_no_rule_finds_an_error(kind: DocumentKind) -> None:
    """A good case is judged by its own rule only: without this, every document of a kind may be wrong."""
    assert kind.name in sound_kinds() or kind.name in WITHOUT_RULES, "write such a document in a good*.txt of its rules"


def judges(rule: type[Rule], reader: type[Document]) -> bool:
    if issubclass(rule, DocumentRule):
        return rule.applies_to(reader)
    return issubclass(rule, ReferenceRule) and reader.kind in rule.kinds


def concrete_rules(parent: type[Rule] = Rule) -> Iterator[type[Rule]]:
    """The rules of the package that check something: of a class and those derived from it."""
    for derived in parent.__subclasses__():
        if derived.__module__.startswith("workpacket.") and derived.__doc__ and "Remedy:" in derived.__doc__:
            yield derived
        yield from concrete_rules(derived)


def test_every_rule_of_the_package_is_run() -> None:
    for found in iter_modules(rules.__path__):
        importlib.import_module(f"workpacket.rules.{found.name}")
    listed = all_rules()
    assert len(listed) == len(set(listed))
    for rule in concrete_rules():
        module = rule.__module__.rpartition(".")[2]
        where = "ACROSS in tools/workpacket/rules/rule.py, or in KINDS in tools/workpacket/documents/document.py"
        assert rule in listed, f"{rule.__name__} is not run: name its module, {module}, in {where}"


def test_a_check_without_rules_does_not_pass() -> None:
    code = "from workpacket.rules.rule import rules_for; rules_for('stub')"
    run = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=False)

    assert run.returncode == 1
    assert "rules are defined by their docstrings" in run.stderr


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_compared_across_files_has_a_summary(kind: DocumentKind) -> None:
    own_summary = reader_of(kind.name).summary is not Document.summary
    where = f"tools/workpacket/documents/{kind.module or kind.name}.py"
    said = f"write `summary` of {kind.reader} in {where}, typed in summary.py, or correct WITHOUT_SUMMARY here"
    assert own_summary is (kind.name not in WITHOUT_SUMMARY), said


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_kind_has_a_draft_07_twin(kind: DocumentKind) -> None:
    twin = ROOT / "schemas" / "draft-07" / f"{kind.name}.schema.json"
    assert twin.is_file(), f"`just reference` writes it from schemas/{kind.name}.schema.json"


def test_every_place_is_of_a_known_kind_and_every_kind_has_a_place() -> None:
    placed = {kind for _, kind in PLACES}
    assert placed - set(BY_NAME) == set(), f"write a line for each in {READING}"
    assert set(BY_NAME) - placed == set(), "write a place for each in PLACES in tools/workpacket/documents/places.py"


def test_every_place_lies_in_a_folder_that_is_searched() -> None:
    for pattern, _ in PLACES:
        assert any(pattern.startswith(f"{root}/") for root in ROOTS), pattern


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".GOV/task_packets/WP-1-A-v1.md", "packet"),
        (".GOV/task_packets/WP-1-A-v1/packet.md", "packet"),
        (".GOV/task_packets/WP-1-A-v1/refinement.md", "refinement"),
        (".GOV/task_packets/stubs/WP-1-A-v1.md", "stub"),
        (".GOV/task_packets/stubs/README.md", None),
        (".GOV/task_packets/.md", None),
        (".GOV/task_packets/stubs/deeper/WP-1-A-v1.md", None),
        ("kitty-specs/012-x/tasks/WP03-parser.md", "work_package"),
        ("kitty-specs/012-x/tasks/README.md", None),
        ("docs/progress/x-architect.md", "role_progress"),
        ("docs/progress/_template.md", None),
        ("specs/active/auth/checkpoint.yaml", "batch_checkpoint"),
        ("specs/done/auth/checkpoint.yaml", None),
        ("README.md", None),
        ("", None),
    ],
)
def test_a_path_says_what_it_holds(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (".GOV/task_packets/WP-1-Parser-v1.MD", True),
        (".GOV/task_packets/WP-1-Parser-v1.md.bak", True),
        (".GOV/roles_shared/TASKBOARD.md", True),
        ("specs/active/parser/checkpoint.yml", True),
        ("kitty-specs/1-parser/tasks/wp01-reader.md", True),
        (".GOV/task_packets/README.md", False),
        (".GOV/roles_shared/NOTES.md", False),
        ("specs/active/parser/spec.md", False),
        ("kitty-specs/1-parser/tasks/.gitkeep", False),
        ("src/WP-1-Parser-v1.txt", False),
    ],
)
def test_a_file_with_almost_the_name_of_a_document_is_named(path: str, said: bool, tmp_path: Path) -> None:
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text("# Something\n")
    found = find_documents(str(tmp_path))
    codes = [unreadable_finding(one.path, one.problem).code for one in found]
    assert codes == ["file_not_checked"] * said


@given(st.text("/.abWP-*", max_size=40))
def test_any_path_has_one_kind_or_none(path: str) -> None:
    assert kind_of(path) in {None, *BY_NAME}


# A policy may leave everything as it is.
MAY_BE_EMPTY = {"policy"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_empty_file_of_a_kind_that_has_a_form_does_not_pass(kind: DocumentKind) -> None:
    findings = load_findings("x", examine_bytes("x", kind.name, b"").findings)
    assert bool(findings) is (kind.name not in MAY_BE_EMPTY)
