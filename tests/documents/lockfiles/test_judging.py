"""What may change and what may not: direct and transitive, sources and digests, aliases and tricks."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents.lockfiles.states import REGISTRY, archive, compared, judged, npm_lock, npm_package
from workpacket.documents.lockfiles.comparison import FORMATS, Leave, LockFormat, format_of

ZOD = {"zod": "^3.0.0"}
BASE = {"package-lock.json": npm_lock(ZOD, zod=npm_package("zod", "3.0.0"), inner=npm_package("inner", "1.0.0"))}


def after(**packages: dict[str, object]) -> dict[str, str]:
    rows = {"zod": npm_package("zod", "3.0.0"), "inner": npm_package("inner", "1.0.0"), **packages}
    return {"package-lock.json": npm_lock(ZOD, **rows)}


def test_what_came_with_something_else_is_counted_and_not_judged() -> None:
    verdicts, _ = compared(BASE, after(inner=npm_package("inner", "1.1.0"), more=npm_package("more", "1.0.0")))
    verdict = verdicts["package-lock.json"]
    assert verdict.violations == ()
    assert verdict.file.transitive == {"added": 1, "removed": 0, "updated": 1}
    assert verdict.file.new_packages == 1


def test_another_copy_of_a_direct_dependency_deeper_down_is_transitive() -> None:
    assert judged(BASE, after(inner__node_modules__zod=npm_package("zod", "2.0.0"))) == []


def test_a_direct_dependency_may_not_get_a_new_version_even_if_the_range_lets_it() -> None:
    changed = after(zod=npm_package("zod", "3.1.0"))
    assert judged(BASE, changed) == [("zod", "updated")]
    assert judged(BASE, changed, "zod") == []


@pytest.mark.parametrize(
    ("package", "what"),
    [
        (npm_package("inner", "1.0.0", integrity="sha512-other"), "integrity"),
        (npm_package("inner", "1.0.0", integrity=None), "integrity"),
        (npm_package("inner", "1.0.0", integrity="sha1-other"), "integrity"),
        (npm_package("inner", "1.0.0", resolved="https://elsewhere.example/inner/-/inner-1.0.0.tgz"), "source"),
        (npm_package("inner", "1.0.0", resolved=archive("wolf", "1.0.0")), "source"),
        (npm_package("inner", "1.0.0", resolved=archive("inner", "9.0.0")), "source"),
        (npm_package("inner", "1.1.0", resolved="git+ssh://git@github.com/wolf/inner.git#abc"), "source"),
        (npm_package("inner", "1.1.0", resolved="https://codeload.github.com/wolf/inner/tar.gz/abc"), "source"),
        (npm_package("inner", "1.1.0", resolved="http://registry.example/inner/-/inner-1.1.0.tgz"), "source"),
        (npm_package("inner", "1.1.0", integrity=None), "integrity"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_sources_and_digests_are_judged_for_every_package_and_no_name_covers_them(
    package: dict[str, object], what: str
) -> None:
    assert judged(BASE, after(inner=package), "*") == [("inner", what)]


def test_a_new_package_from_nowhere_known_is_no_more_allowed_than_the_others() -> None:
    wolf = npm_package("wolf", "1.0.0", resolved="https://elsewhere.example/wolf/-/wolf-1.0.0.tgz")
    assert judged(BASE, after(wolf=wolf), "*") == [("wolf", "source")]


def test_a_registry_that_serves_below_a_folder_is_its_folder() -> None:
    proxy = f"{REGISTRY}/api/npm/main"
    before = {
        "package-lock.json": npm_lock(ZOD, zod=npm_package("zod", "3.0.0", resolved=f"{proxy}/zod/-/zod-3.0.0.tgz"))
    }
    same = npm_package("@org/zod", "1.0.0", resolved=f"{proxy}/@org/zod/-/zod-1.0.0.tgz")
    other = npm_package("@org/zod", "1.0.0", resolved=f"{REGISTRY}/api/npm/open/@org/zod/-/zod-1.0.0.tgz")
    zod = json.loads(before["package-lock.json"])["packages"]["node_modules/zod"]
    with_same = {"package-lock.json": npm_lock(ZOD, zod=zod, **{"@org__zod": same})}
    with_other = {"package-lock.json": npm_lock(ZOD, zod=zod, **{"@org__zod": other})}
    assert judged(before, with_same) == []
    assert judged(before, with_other) == [("@org/zod", "source")]


def test_credentials_in_an_address_are_no_other_source_and_are_never_repeated() -> None:
    secret = "https://me:hunter2@registry.example/inner/-/inner-1.0.0.tgz"
    assert judged(BASE, after(inner=npm_package("inner", "1.0.0", resolved=secret))) == []
    elsewhere = secret.replace("registry", "elsewhere")
    verdicts, _ = compared(BASE, after(inner=npm_package("inner", "1.0.0", resolved=elsewhere)))
    assert "hunter2" not in json.dumps(verdicts["package-lock.json"].as_json())


def test_an_alias_needs_leave_for_the_package_that_it_is() -> None:
    before, changed = '{"dependencies": {}}', '{"dependencies": {"zod": "npm:wolf@1.0.0"}}'
    found = judged({"package.json": before}, {"package.json": changed}, "zod")
    assert found == [("wolf", "added")]
    scoped = '{"dependencies": {"zod": "npm:@evil/wolf@^1"}}'
    assert judged({"package.json": before}, {"package.json": scoped}, "zod") == [("@evil/wolf", "added")]


def test_another_package_in_the_folder_of_a_direct_one_is_seen_although_the_version_is_the_same() -> None:
    wolf = {**npm_package("wolf", "3.0.0"), "name": "wolf"}
    assert judged(BASE, after(zod=wolf)) == [("wolf", "added"), ("zod", "updated")]
    assert judged(BASE, after(zod=wolf), "zod") == [("wolf", "added")]


@pytest.mark.parametrize("version", ["wolf@3.0.0", "/wolf@3.0.0", "/wolf/3.0.0", "wolf@3.0.0(react@18.0.0)"])
def test_another_package_under_a_name_in_a_pnpm_lock_is_seen(version: str) -> None:
    def lock(got: str) -> dict[str, str]:
        importer = (
            f"importers:\n  .:\n    dependencies:\n      zod:\n        specifier: ^3.0.0\n        version: {got}\n"
        )
        return {"pnpm-lock.yaml": f"lockfileVersion: '9.0'\n{importer}"}

    assert judged(lock("3.0.0"), lock(version), "zod") == [("wolf", "added")]
    assert judged(lock("3.0.0"), lock("3.0.0(react@18.0.0)")) == []


def test_the_two_lists_of_an_npm_lock_of_version_2_are_both_read() -> None:
    lock = json.loads(BASE["package-lock.json"])
    lock["lockfileVersion"] = 2
    lock["dependencies"] = {"inner": npm_package("inner", "1.0.0")}
    before = json.dumps(lock)
    lock["dependencies"] = {"inner": npm_package("inner", "1.0.0", integrity="sha512-for old npm only")}
    assert judged({"package-lock.json": before}, {"package-lock.json": json.dumps(lock)}) == [("inner", "integrity")]


def test_without_a_manifest_beside_it_everything_in_a_lock_file_counts_as_asked_for() -> None:
    before = 'inner@^1.0.0:\n  version "1.0.0"\n'
    assert judged({"yarn.lock": before}, {"yarn.lock": before.replace('"1.0.0"', '"1.1.0"')}) == [("inner", "updated")]
    with_manifest = {"package.json": '{"dependencies": {"zod": "^3"}}'}
    changed = {"yarn.lock": before.replace('"1.0.0"', '"1.1.0"')}
    assert judged({"yarn.lock": before, **with_manifest}, {**changed, **with_manifest}) == []


def test_parts_of_a_workspace_ask_for_what_is_in_the_lock_file_above_them() -> None:
    lock = 'inner@^1.0.0:\n  version "1.0.0"\n'
    parts = {"package.json": '{"workspaces": ["a"]}', "a/package.json": '{"dependencies": {"inner": "^1.0.0"}}'}
    changed = {"yarn.lock": lock.replace('"1.0.0"', '"1.1.0"'), **parts}
    assert judged({"yarn.lock": lock, **parts}, changed) == [("inner", "updated")]


@pytest.mark.parametrize(
    ("requirement", "what"),
    [
        ("^4", []),
        ("git+https://github.com/wolf/zod", ["source"]),
        ("github:wolf/zod", ["source"]),
        ("wolf/zod", ["source"]),
        ("https://elsewhere.example/zod.tgz", ["source"]),
        ("file:../../elsewhere", ["source"]),
        ("file:/tmp/zod", ["source"]),
        ("file:vendor/zod", []),
        ("workspace:*", []),
        ("1.0.0 || 2.x", []),
    ],
)
def test_leave_for_a_name_is_none_for_a_place(requirement: str, what: list[str]) -> None:
    before, changed = ({"package.json": json.dumps({"dependencies": {"zod": said}})} for said in ("^3", requirement))
    assert judged(before, changed, "zod") == [("zod", one) for one in what]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("zod==4", []),
        ("zod @ https://elsewhere.example/zod.whl", ["source"]),
        ("https://elsewhere.example/zod.whl", ["source"]),
        ("--extra-index-url https://elsewhere.example/simple", ["source"]),
        ("-i https://elsewhere.example/simple", ["source"]),
        ("-r more-requirements.txt", []),
        ("-r ../more.txt", ["source"]),
        ("-e ./own", []),
        ("-e git+https://github.com/wolf/zod#egg=zod", ["source"]),
    ],
)
def test_lines_of_a_requirements_file(line: str, what: list[str]) -> None:
    assert [kind for _, kind in judged({"requirements.txt": ""}, {"requirements.txt": f"{line}\n"}, "*")] == what
    assert judged({"requirements.txt": ""}, {"requirements.txt": f"{line}\n"})[0][1] == "added"


@pytest.mark.parametrize(
    ("path", "before", "changed", "expected"),
    [
        ("go.mod", "module m\nrequire a.example/x v1.0.0\n", "module m\nrequire a.example/x v1.1.0\n",
         [("a.example/x", "updated")]),
        ("go.mod", "module m\n", "module m\nrequire (\n\ta.example/x v1.0.0\n\tb.example/y v1.0.0 // indirect\n)\n",
         [("a.example/x", "added")]),
        ("go.mod", "module m\nrequire a.example/x v1.0.0\n",
         "module m\nrequire a.example/x v1.0.0\nreplace a.example/x => b.example/wolf v1.0.0\n",
         [("a.example/x", "updated"), ("a.example/x", "source")]),
        ("go.sum", "a.example/x v1.0.0 h1:AAA=\n", "a.example/x v1.0.0 h1:BBB=\n", [("a.example/x", "integrity")]),
        ("Cargo.toml", '[dependencies]\nserde = "1"\n', '[dependencies]\nserde = { git = "https://x.example/serde" }\n',
         [("serde", "updated"), ("serde", "source")]),
        ("Cargo.toml", "", '[dependencies]\nnice = { package = "wolf", version = "1" }\n', [("wolf", "added")]),
        ("Cargo.toml", "", '[target.\'cfg(unix)\'.dependencies]\nwolf = "1"\n', [("wolf", "added")]),
        ("pyproject.toml", "", '[build-system]\nrequires = ["wolf"]\n', [("wolf", "added")]),
        ("pyproject.toml", "", '[dependency-groups]\ntest = ["Wolf_X>=1"]\n', [("wolf-x", "added")]),
        ("requirements-dev.txt", "zod==1\n", "zod==1 \\\n  --hash=sha256:aa\n", [("zod", "updated")]),
        ("package.json", "{}", '{"overrides": {"inner": "2"}}', [("inner", "added")]),
    ],
    ids=["go", "go block", "go replace", "go.sum", "cargo git", "cargo rename", "cargo target", "build", "group",
         "hash", "override"],
)  # fmt: skip
def test_formats_without_a_recorded_project(
    path: str, before: str, changed: str, expected: list[tuple[str, str]]
) -> None:
    assert judged({path: before}, {path: changed}) == expected


CRATE = """[[package]]
name = "sample"
version = "1.0.0"
dependencies = ["serde"]

[[package]]
name = "{}"
version = "{}"
source = "{}"
checksum = "{}"
"""
INDEX = "registry+https://registry.example/index"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("serde", "1.0.1", INDEX, "aa"), [("serde", "updated")]),
        (("serde", "1.0.0", INDEX, "bb"), [("serde", "integrity")]),
        (("serde", "1.0.0", "registry+https://elsewhere.example/index", "aa"), [("serde", "source")]),
    ],
    ids=["version", "digest", "registry"],
)
def test_a_cargo_lock_by_its_documentation(row: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    before = CRATE.format("serde", "1.0.0", INDEX, "aa")
    assert judged({"Cargo.lock": before}, {"Cargo.lock": CRATE.format(*row)}) == expected


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("package-lock.json", '{"packages": {"": {}, "": {}}}'),
        ("package-lock.json", '{"packages": []}'),
        ("package-lock.json", '{"packages": {"node_modules/x": {"version": 1}}}'),
        ("package-lock.json", '{"packages": {"node_modules/x": []}}'),
        ("package-lock.json", '{"dependencies": {"x": 1}}'),
        ("package-lock.json", "[]"),
        ("package-lock.json", '{"dependencies": ' + '{"a": {"dependencies": ' * 60 + "{}" + "}}" * 60 + "}"),
        ("pnpm-lock.yaml", "a: &a [1]\nb: *a\n"),
        ("pnpm-lock.yaml", "packages: {}\n"),
        ("yarn.lock", "<<<<<<< HEAD\n"),
        ("yarn.lock", 'inner@^1:\n  resolved "x"\n'),
        ("uv.lock", "[[package]]\nname = 'x'\nversion = '1'\n"),
        ("uv.lock", "version = 1\nversion = 2\n"),
        ("pyproject.toml", "project = []\n"),
        ("pnpm-lock.yaml", "lockfileVersion: '9.0'\nimporters: {.: [1]}\n"),
        ("yarn.lock", "__metadata:\n  version: 8\nx: [1]\n"),
        ("poetry.lock", "package = 1\n"),
        ("Pipfile.lock", '{"default": {"x": []}}'),
        ("Cargo.lock", "[[package]]\nversion = '1'\n"),
        ("go.mod", "module m\nrequire (\n"),
        ("go.sum", "a.example/x v1.0.0 h1:AAA=\na.example/x v1.0.0 h1:BBB=\n"),
        ("requirements.txt", b"zod==\xff\n"),
        ("package.json", "<<<<<<< HEAD\n{}\n"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(path: str, text: str | bytes) -> None:
    verdicts, unreadable = compared({}, {path: text}, "*")
    assert verdicts == {}
    (one,) = unreadable
    assert (one.path, one.code) == (path, "lockfile_malformed")
    assert one.message.endswith(" (in after)")
    assert one.line >= 1
    # A base that cannot be read is no empty one.
    assert compared({path: text}, {path: ""}, "*")[0] == {}


def test_names_of_python_are_allowed_in_any_spelling() -> None:
    before, changed = {"requirements.txt": ""}, {"requirements.txt": "Ruamel.YAML==1\n"}
    assert judged(before, changed, "ruamel_yaml") == judged(before, changed, "RUAMEL.*") == []
    assert judged({"package.json": "{}"}, {"package.json": '{"dependencies": {"zod": "1"}}'}, "Zod") == [
        ("zod", "added")
    ]


@pytest.mark.parametrize("known", FORMATS, ids=lambda known: known.name)
@given(text=st.text(alphabet='ab@:/-#"{}[]=.,\n\\ 1_~>', max_size=300) | st.binary(max_size=100))
def test_no_text_makes_a_reader_raise(known: LockFormat, text: str | bytes) -> None:
    path = {"requirements": "requirements.txt", "npm": "package-lock.json"}.get(known.name) or known.files.replace(
        "\\", ""
    )
    assert format_of(path) == known
    compared({}, {path: text.encode() if isinstance(text, str) else text}, "*")


def test_more_new_packages_than_the_threshold_are_a_warning() -> None:
    many = {f"p{number}": npm_package(f"p{number}", "1.0.0") for number in range(51)}
    assert compared(BASE, after(**many))[0]["package-lock.json"].warning == "51 new packages, more than 50"
    assert compared(BASE, after(**dict(list(many.items())[:50])))[0]["package-lock.json"].warning == ""


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("zod", "zod", True), ("zod", "zod-evil", False), ("@org/*", "@org/a", True), ("@org/*", "@organ/a", False),
        ("@org/*", "@org", False), ("*", "anything", True), ("a*b*c", "abc", True), ("a*b*c", "acb", False),
        ("ab*ba", "aba", False), ("zod", "Zod", False),
    ],
)  # fmt: skip
def test_patterns_fit_the_whole_of_a_name(pattern: str, name: str, covered: bool) -> None:
    assert Leave((pattern,)).covers(name) is covered
