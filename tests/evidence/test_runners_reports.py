"""What runners report is read test by test; what is cut short gives fewer tests, never more."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.evidence.runners import (
    Obstacle,
    Ran,
    TestReport,
    as_watched,
    by_exit_code,
    read_cargo,
    read_go,
    read_jest,
    read_junit,
    read_probe,
)


def lines(*rows: Mapping[str, object]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def statuses(report: TestReport) -> dict[str, str]:
    return {name: ran.status for name, ran in report.tests.items()}


def test_a_command_without_a_report_is_its_own_test() -> None:
    assert by_exit_code("check", 0, "x") == TestReport("exit code", {"check": Ran("passed", message="x")})
    assert by_exit_code("check", 2, "x").tests["check"].status == "failed"


# --- our probe: pytest and unittest ---

START = {"kind": "start", "runner": "pytest"}


def test_the_probe_tells_tests_obstacles_plugins_and_what_was_touched() -> None:
    report = read_probe(
        lines(
            START,
            {"kind": "touched", "test": "a", "what": "src/x.py:3"},
            {"kind": "test", "id": "a", "path": "a.py", "status": "passed", "message": "", "started": ["sh x"]},
            {"kind": "test", "id": "b", "path": "b.py", "status": "failed", "message": "no", "started": []},
            {"kind": "error", "where": "c.py", "message": "gone"},
            {"kind": "plugin", "path": "y.py"},
            {"kind": "plugin", "path": "conftest.py"},
            {"kind": "plugin", "path": "y.py"},
        )
    )
    tests = {"a": Ran("passed", "a.py", "", "src/x.py:3", ("sh x",)), "b": Ran("failed", "b.py", "no")}
    assert report == TestReport("pytest", tests, (Obstacle("c.py", "gone"),), ("conftest.py", "y.py"), measured=True)


def test_a_test_that_is_reported_twice_has_to_end_the_same_way() -> None:
    passed = {"kind": "test", "id": "a", "path": "a.py", "status": "passed", "mentions": ["ciao"]}
    failed = {**passed, "status": "failed"}
    same = read_probe(lines(START, passed, passed))
    assert same is not None
    assert same.tests["a"] == Ran("passed", "a.py", mentions=("ciao",))
    for rows in ((passed, failed), (failed, passed)):
        report = read_probe(lines(START, *rows))
        assert report is not None
        assert report.tests["a"] == Ran("failed", "a.py", "it was reported twice, with different outcomes")


@pytest.mark.parametrize(
    ("rows", "unfinished"),
    [
        ([{"main": True}], True),
        ([{"main": True}, {"kind": "end", "main": True}], False),
        ([{"main": True}, {"main": True}, {"kind": "end", "main": True}], True),
        # Of the processes of a runner, the first has the say.
        ([{"main": True}, {"main": False}, {"kind": "end", "main": True}], False),
        ([{"main": True}, {"kind": "end", "main": False}], True),
        ([{}], False),
    ],
)
def test_a_runner_that_begins_also_ends(rows: list[dict[str, object]], unfinished: bool) -> None:
    report = read_probe(lines(*({**START, **row} for row in rows)))
    assert report is not None
    assert report.unfinished is unfinished


def test_a_program_of_the_repository_is_watched_in_the_place_of_a_runner() -> None:
    alone = by_exit_code("check", 0, "x")
    touched = {"kind": "touched", "test": "check", "what": "src/x.py:3"}
    started = {"kind": "started", "test": "check", "words": "sh y"}
    assert as_watched(alone, lines(touched, started)) == alone
    seen = as_watched(alone, lines({"kind": "process"}, touched, started))
    assert (seen.measured, seen.tests["check"]) == (True, Ran("passed", "", "x", "src/x.py:3", ("sh y",)))
    idle = as_watched(alone, lines({"kind": "process"}))
    assert (idle.measured, idle.tests["check"]) == (True, Ran("passed", message="x"))


def test_cargo_does_not_list_more_tests_than_it_counts() -> None:
    text = "test a ... ok\ntest b ... ok\n\ntest result: ok. {} passed; 0 failed; 0 ignored\n"
    assert statuses(read_cargo(text.format(2))) == {"a": "passed", "b": "passed"}
    report = read_cargo(text.format(1))
    assert (statuses(report), report.obstacles[0].message) == ({}, "it lists more passed tests than its summary counts")
    assert statuses(read_cargo(text.format(1) + "test result: ok. 1 passed; 0 failed\n")) == {
        "a": "passed",
        "b": "passed",
    }


def test_what_a_probe_leaves_out_is_empty() -> None:
    assert read_probe(lines(START, {"kind": "test", "id": "a", "status": "error"})) == TestReport(
        "pytest", {"a": Ran("error")}, measured=True
    )
    assert read_probe(lines(START, {"kind": "error"})) == TestReport("pytest", {}, (Obstacle("", ""),), measured=True)


def test_without_a_runner_there_is_no_report() -> None:
    assert read_probe("") is None
    assert read_probe(lines({"kind": "touched", "test": "a", "what": "x"})) is None
    assert read_probe(lines({"kind": "test", "id": "a", "status": "passed"})) is None


@pytest.mark.parametrize("bad", ['{"kind": "test", "id"', "[1]", "plain", '{"kind": 3}', '{"other": "start"}'])
def test_lines_that_are_none_of_the_probe_are_passed_over(bad: str) -> None:
    report = read_probe(f"{bad}\n{lines(START, {'kind': 'test', 'id': 'a', 'status': 'skipped'})}{bad}")
    assert report is not None
    assert statuses(report) == {"a": "skipped"}


def test_an_outcome_that_nobody_knows_is_no_test() -> None:
    report = read_probe(lines(START, {"kind": "test", "id": "a", "status": "fine"}))
    assert report is not None
    assert report.tests == {}


# --- go ---


def go(action: str, test: str = "", output: str = "") -> dict[str, object]:
    row: dict[str, object] = {"Action": action, "Package": "example.org/x"}
    return row | ({"Test": test} if test else {}) | ({"Output": output} if output else {})


def test_go_tells_each_test_of_each_package() -> None:
    text = lines(
        go("run", "TestA"), go("output", "TestA", "a.go:3: "), go("output", "TestA", "bad\n"), go("fail", "TestA"),
        go("pass", "TestB"), go("skip", "TestC"), go("pass", "TestB/sub"), go("output", "", "ok x\n"), go("pass"),
    )  # fmt: skip
    report = read_go(text)
    assert report.tests["example.org/x.TestA"] == Ran("failed", message="a.go:3: bad\n")
    assert statuses(report) == {
        "example.org/x.TestA": "failed",
        "example.org/x.TestB": "passed",
        "example.org/x.TestC": "skipped",
        "example.org/x.TestB/sub": "passed",
    }
    assert (report.runner, report.obstacles) == ("go", ())


@pytest.mark.parametrize(
    "text",
    [
        "./x_test.go:6:5: undefined: Ciao\n" + lines(go("output", "", "FAIL\tx [build failed]\n"), go("fail")),
        lines(
            go("build-output", "", "./x_test.go:6:5: undefined: Ciao\n"), go("build-fail"), go("output", "", "FAIL x\n")
        ),
    ],
)
def test_go_says_why_a_package_was_not_built(text: str) -> None:
    (obstacle,) = read_go(text + lines(go("pass", "TestB"))).obstacles
    assert obstacle.where == ""
    assert obstacle.message.startswith("./x_test.go:6:5: undefined: Ciao\nFAIL")


def test_go_without_tests_says_what_it_printed() -> None:
    assert read_go("go: go.mod file not found\n").obstacles == (Obstacle("", "go: go.mod file not found"),)


# --- cargo ---

CARGO = """
   Compiling greet v0.1.0
     Running unittests src/lib.rs (target/debug/deps/greet-1)

running 2 tests
test tests::plain ... ok
test tests::later ... ignored, not yet

     Running tests/ciao.rs (target/debug/deps/ciao-2)

running 3 tests
test panics - should panic ... ok
test with spaces (line 3) ... FAILED
test last ... ok

failures:

---- with spaces (line 3) stdout ----
thread panicked
left: 1

failures:
"""


def test_cargo_tells_each_test_and_its_file() -> None:
    report = read_cargo(CARGO)
    assert statuses(report) == {
        "src/lib.rs::tests::plain": "passed",
        "src/lib.rs::tests::later": "skipped",
        "tests/ciao.rs::panics": "passed",
        "tests/ciao.rs::with spaces (line 3)": "failed",
        "tests/ciao.rs::last": "passed",
    }
    assert report.tests["tests/ciao.rs::with spaces (line 3)"].message == "thread panicked\nleft: 1"
    assert report.tests["tests/ciao.rs::last"] == Ran("passed", "tests/ciao.rs")
    assert (report.runner, report.obstacles) == ("cargo", ())


def test_cargo_says_why_nothing_was_compiled() -> None:
    text = "error[E0432]: unresolved import `greet::ciao`\nerror: could not compile `greet`\n"
    assert read_cargo(text).obstacles == (Obstacle("", text),)
    assert read_cargo("test a ... ok\n" + text).obstacles == (Obstacle("", "test a ... ok\n" + text),)
    assert read_cargo("running 0 tests\n").obstacles == (Obstacle("", "running 0 tests\n"),)
    assert read_cargo("test a ... ok\n") == TestReport("cargo", {"a": Ran("passed")})


# --- jest ---


def suite(path: str, *rows: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": path, "status": "passed", "message": "", "assertionResults": list(rows), **more}


def test_jest_tells_each_test_by_file_and_full_name() -> None:
    whole = {
        "testResults": [
            suite(
                "/tree/tests/a.test.js",
                {"fullName": "a greets", "status": "passed", "failureMessages": []},
                {"fullName": "a waits", "status": "pending"},
                {"fullName": "a fails", "status": "failed", "failureMessages": ["one", "two"]},
                status="failed",
            ),
            suite("/tree/tests/b.test.js", status="failed", message="Cannot find module '../src/b'"),
            suite("C:\\other\\c.test.js", {"fullName": "c", "status": "todo"}),
            "no suite",
        ]
    }
    report = read_jest(f" {json.dumps(whole)}\n", "/tree/")
    assert report.tests == {
        "tests/a.test.js::a greets": Ran("passed", "tests/a.test.js"),
        "tests/a.test.js::a waits": Ran("skipped", "tests/a.test.js"),
        "tests/a.test.js::a fails": Ran("failed", "tests/a.test.js", "one\ntwo"),
        "C:/other/c.test.js::c": Ran("skipped", "C:/other/c.test.js"),
    }
    assert report.runner == "jest"
    assert report.obstacles == (Obstacle("tests/b.test.js", "Cannot find module '../src/b'"),)


def test_jest_reports_below_a_root_of_windows() -> None:
    whole = {"testResults": [suite("C:\\tree\\a.test.js", {"fullName": "a", "status": "passed"})]}
    assert list(read_jest(json.dumps(whole), "C:\\tree").tests) == ["a.test.js::a"]


@pytest.mark.parametrize("text", ["", "x", "[]", '{"testResults": 3}', '{"testResults": [{"assertionResults": 3}]}'])
def test_what_jest_did_not_write_holds_no_tests(text: str) -> None:
    assert read_jest(text, "/tree") == TestReport("jest")


# --- JUnit ---


def test_junit_tells_each_case_by_class_and_name() -> None:
    text = b"""<testsuites><testsuite>
<testcase classname="a.B" name="one" file="a/B.java"/>
<testcase classname="a.B" name="two"><failure type="T" message="m">text</failure></testcase>
<testcase classname="a.B" name="three"><error message="m"/></testcase>
<testcase classname="a.B" name="four"><system-out>x</system-out><skipped/></testcase>
<testcase name="five"/>
</testsuite></testsuites>"""
    assert read_junit([text]).tests == {
        "a.B::one": Ran("passed", "a/B.java"),
        "a.B::two": Ran("failed", message="T\nm\ntext"),
        "a.B::three": Ran("error", message="m"),
        "a.B::four": Ran("skipped"),
        "five": Ran("passed"),
    }


def test_junit_of_several_files_is_one_report_and_a_failure_stays() -> None:
    good, bad = b"<t><testcase name='a'/></t>", b"<t><testcase name='a'><failure/></testcase></t>"
    for files in ([good, bad], [bad, good]):
        assert statuses(read_junit(files)) == {"a": "failed"}
    assert statuses(read_junit([good, b"<t><testcase name='b'/></t>"])) == {"a": "passed", "b": "passed"}
    assert read_junit([good]).runner == "junit"


def test_junit_with_a_namespace_is_read() -> None:
    text = b"<t xmlns='urn:x'><testcase name='a'><failure/></testcase></t>"
    assert statuses(read_junit([text])) == {"a": "failed"}


@pytest.mark.parametrize(
    "text",
    [
        b"", b"<t>", b"no xml", b"<!DOCTYPE t><t><testcase name='a'/></t>",
        b"<!DOCTYPE t [<!ENTITY x 'y'>]><t><testcase name='&x;'/></t>", b"<?xml version='1.0' encoding='x'?><t/>",
    ],
)  # fmt: skip
def test_what_is_no_plain_report_holds_no_tests(text: bytes) -> None:
    assert read_junit([text]) == TestReport("junit")


@given(st.text(), st.binary())
def test_no_text_makes_a_reader_fail(text: str, data: bytes) -> None:
    read_probe(text)
    read_go(text)
    read_cargo(text)
    read_jest(text, "/tree")
    read_junit([data])


# --- what small changes of the code would do ---


def test_a_row_counts_for_what_its_kind_says() -> None:
    report = read_probe(
        lines(
            START,
            {"kind": "test", "id": "a", "status": "passed"},
            {"kind": "error", "test": "a", "what": "src/x.py:1", "id": "b", "status": "passed", "message": "no"},
        )
    )
    assert report is not None
    assert report.tests == {"a": Ran("passed")}


def test_what_go_prints_of_a_package_is_kept_to_its_last_letter() -> None:
    assert read_go(lines({"Action": "output", "Package": "p", "Output": "FAIL box\n"})).obstacles == (
        Obstacle("", "FAIL box"),
    )


def test_cargo_knows_its_own_lines() -> None:
    assert statuses(read_cargo("     Running wild dogs\ntest a ... ok\ntest b ... what\n")) == {"a": "passed"}
    assert statuses(read_cargo("test a ... ok\ntest result: ok. 0 passengers\n")) == {"a": "passed"}
    assert read_cargo("test a ... ok\ntest result: ok. 0 passed; 0 failed\n").runner == "cargo"


def test_jest_names_what_failed_to_load_by_its_place() -> None:
    suites = [{"name": f"/tmp/box/{name}.js", "status": name, "message": name} for name in ("passed", "failed")]
    report = read_jest(json.dumps({"testResults": suites}), "/tmp/box")
    assert report.obstacles == (Obstacle("failed.js", "failed"),)


def test_junit_names_the_file_of_what_failed() -> None:
    text = b'<testsuite><testcase name="a" file="a.py"><failure/></testcase></testsuite>'
    assert read_junit([text]).tests == {"a": Ran("failed", "a.py")}
    assert read_junit([b"<!ENTITY x><testcase name='a'/>"]).tests == {}
