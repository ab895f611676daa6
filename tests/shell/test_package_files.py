"""Every schema in schemas/: well-formed, explained, current in its twin, and judged alike by all who judge."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT7

from draft07 import twin
from text.schema_strategies import mutations
from workpacket import __version__
from workpacket.shell import package_files
from workpacket.text.formats import FORMATS
from workpacket.text.schema import SchemaSet, compile_acceptor
from workpacket.text.schema_loading import DIALECT, Loader, Schema
from workpacket.text.schema_messages import complaints
from workpacket.text.source import Plain

FOLDER = Path(__file__).parents[2] / "schemas"
SUFFIX = ".schema.json"
NAMES = sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))
MOST_MUTATIONS = 1_500


def read(name: str) -> bytes:
    return (FOLDER / f"{name}{SUFFIX}").read_bytes()


def definitions() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read("common"))["$defs"]
    return found


def examples(schema: Schema) -> list[Plain]:
    return list(schema.get("examples", ())) if isinstance(schema, dict) else []


def loaded_definition(name: str) -> Schema:
    referring = json.dumps({"$schema": DIALECT, "$ref": f"common{SUFFIX}#/$defs/{name}"}).encode()
    return Loader({"it": referring, "common": read("common")}.__getitem__).load("it")


# Name and loaded schema, of every schema and of every shared definition.
JUDGED = [
    *((name, Loader(read).load(name)) for name in NAMES),
    *((name, loaded_definition(name)) for name in definitions()),
]


def formats_for_jsonschema() -> FormatChecker:
    checker = FormatChecker(())
    for name, check in FORMATS.items():
        checker.checks(name)(lambda value, check=check: not isinstance(value, str) or not check(value))
    return checker


def test_there_are_schemas() -> None:
    assert "common" in NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_explained_and_has_an_identity(name: str) -> None:
    schema = json.loads(read(name))

    Draft202012Validator.check_schema(schema)
    assert schema["$id"]
    assert schema["title"]
    assert schema["description"]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_accepts_its_examples_and_has_some(name: str) -> None:
    found = json.loads(read(name)).get("examples", [])

    assert found or name == "common", "common has nothing but definitions, which have their own"
    for example in found:
        assert SchemaSet(read).violations(name, example) == ()


@pytest.mark.parametrize(("name", "definition"), list(definitions().items()))
def test_a_shared_definition_is_explained_and_has_examples(name: str, definition: dict[str, Any]) -> None:
    assert definition["title"]
    assert definition["description"].endswith(".")
    assert definition["examples"]


@pytest.mark.parametrize(("name", "schema"), JUDGED)
def test_acceptor_and_judge_agree_on_mutations_of_the_examples(name: str, schema: Schema) -> None:
    found = examples(schema)
    accepts = compile_acceptor(schema)
    verdicts = set()

    assert accepts is not None, "a shipped schema that has no acceptor makes every check import jsonschema"
    for example in found:
        assert accepts(example)
        for value in islice(mutations(example), MOST_MUTATIONS):
            verdict = complaints(schema, value) == []
            assert accepts(value) is verdict, value
            verdicts.add(verdict)
    assert False in verdicts or not found


@pytest.mark.parametrize("name", NAMES)
def test_the_twin_is_current(name: str) -> None:
    path = FOLDER / "draft-07" / f"{name}{SUFFIX}"

    assert path.is_file(), "run: python3 tools/draft07_twins.py"
    assert path.read_bytes() == twin(name, read), "run: python3 tools/draft07_twins.py"


def test_no_twin_is_left_of_a_schema_that_is_gone() -> None:
    assert sorted(path.name.removesuffix(SUFFIX) for path in (FOLDER / "draft-07").glob("*")) == NAMES


@cache
def twins() -> Any:
    """The twins, and no way to fetch anything else."""
    made = [json.loads(twin(name, read)) for name in NAMES]
    return Registry().with_resources((one["$id"], DRAFT7.create_resource(one)) for one in made).crawl()


def twin_validator(reference: str) -> Any:
    """A draft-07 validator with our formats and the twins."""
    return Draft7Validator({"$ref": reference}, registry=twins(), format_checker=formats_for_jsonschema())


@pytest.mark.parametrize("name", NAMES)
def test_a_twin_judges_as_its_schema_does(name: str) -> None:
    """Values with a last line break are left out: there Python's `$` is not the one of editors."""
    made = json.loads(twin(name, read))
    Draft7Validator.check_schema(made)
    validator = twin_validator(made["$id"])
    schema = Loader(read).load(name)

    for example in examples(schema):
        for value in islice((example, *mutations(example)), MOST_MUTATIONS // 5):
            if "\\n" not in json.dumps(value):
                assert validator.is_valid(value) is (complaints(schema, value) == []), value


@pytest.mark.parametrize(("name", "definition"), list(definitions().items()))
def test_the_twin_of_a_shared_definition_judges_as_it_does(name: str, definition: dict[str, Any]) -> None:
    identity = json.loads(twin("common", read))["$id"]
    validator = twin_validator(f"{identity}#/definitions/{name}")
    schema = loaded_definition(name)

    for example in definition["examples"]:
        for value in (example, *mutations(example)):
            if not (isinstance(value, str) and value.endswith("\n")):
                assert validator.is_valid(value) is (complaints(schema, value) == []), value


@pytest.mark.parametrize(("name", "schema"), JUDGED)
def test_no_pattern_of_ours_can_be_made_to_run_for_long(name: str, schema: Schema) -> None:
    """Each against long texts of one piece repeated, as long as the schema lets the pattern see them."""
    for pattern, longest in patterns(schema):
        for piece in ("a", "A", "0", "-", "a-", "a.", "/", "a/", "../", "WP-1-", "<", " ", "a1", "é"):
            text = piece * (longest // len(piece))
            assert_quick(pattern, text + "!")
            assert_quick(pattern, text)


def patterns(schema: Any) -> Iterator[tuple[str, int]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("pattern"), str):
            yield schema["pattern"], min(schema.get("maxLength", 20_000), 20_000)
        for part in schema.values():
            yield from patterns(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from patterns(part)


def assert_quick(pattern: str, text: str) -> None:
    begin = time.process_time()
    re.search(pattern, text)
    assert time.process_time() - begin < 1, pattern


def test_the_digest_of_the_package_depends_only_on_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Path(package_files.__file__).parents[1]
    before = package_files.package_digest()
    for name in ("one", "two"):
        shutil.copytree(here, tmp_path / name / "workpacket", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(FOLDER, tmp_path / name / "workpacket" / "schemas")
    (tmp_path / "two/workpacket/value.py").write_text("# another\n")
    found = []
    for name in ("one", "two"):
        monkeypatch.setattr(package_files, "__file__", str(tmp_path / name / "workpacket/shell/package_files.py"))
        found.append(package_files.package_digest())

    assert before.startswith(__version__)
    assert found[0] != found[1]
    assert package_files.package_digest() == found[1]
