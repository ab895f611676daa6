"""What two runs prove of a criterion: every row of the table, and everything that is refused."""

from __future__ import annotations

import pytest

from workpacket.evidence.comparison import Additions, AskedProof, Controls, Side, is_named, judge
from workpacket.evidence.runners import Obstacle, Ran, Status, TestReport, by_exit_code

RUN = "pytest tests"
A, B = "tests/test_a.py::test_a", "tests/test_b.py::test_b"
ADDED = Additions(words=frozenset({"ciao"}), lines={"src/greet.py": (1,)})
MISSING = "ImportError: cannot import name 'ciao' from 'greet'"


def side(
    exit_code: int = 0,
    fault: str = "",
    runner: str = "pytest",
    obstacles: tuple[Obstacle, ...] = (),
    measured: bool = True,
    **tests: Ran,
) -> Side:
    named = {{"a": A, "b": B}.get(name, name): ran for name, ran in tests.items()}
    return Side(TestReport(runner, named, obstacles, measured=measured), exit_code, fault, "the end")


def ran(
    status: Status = "passed",
    message: str = "",
    touched: str = "src/greet.py:1",
    started: tuple[str, ...] = (),
    path: str = "",
) -> Ran:
    return Ran(status, path, message, touched, started)


PASSED, FAILED = ran(), ran("failed", "AssertionError: no")
HERE = side(a=PASSED)
THERE = side(1, a=FAILED)
ASKED = AskedProof(RUN)


def codes(
    asked: AskedProof = ASKED, here: Side = HERE, base: Side | None = THERE, added: Additions = ADDED
) -> list[str]:
    return [fault.code for fault in judge(asked, here, base, added).faults]


def said(asked: AskedProof = ASKED, here: Side = HERE, base: Side | None = THERE, added: Additions = ADDED) -> str:
    (fault,) = judge(asked, here, base, added).faults
    return fault.message


def test_a_test_that_fails_at_the_base_and_executes_the_change_proves_it() -> None:
    judged = judge(ASKED, HERE, THERE, ADDED)
    assert (judged.faults, judged.tests, judged.runner, judged.execution) == ((), {A: "needed"}, "pytest", "measured")
    assert judged.needed == (A,)
    assert (judged.count("needed"), judged.count("kept")) == (1, 0)


@pytest.mark.parametrize(
    ("there", "came_to"),
    [
        (PASSED, "kept"),
        (FAILED, "needed"),
        (ran("failed", "ValueError: x"), "needed"),
        (ran("failed", MISSING), "needed"),
        (ran("failed", "ModuleNotFoundError: No module named 'yaml'"), "could_not_run"),
        (ran("error", MISSING), "needed"),
        (ran("error", "fixture 'db' not found"), "could_not_run"),
        (ran("error", "AssertionError: x"), "could_not_run"),
        (ran("skipped", MISSING), "could_not_run"),
        (None, "could_not_run"),
    ],
)
def test_what_a_test_that_passes_here_came_to_there(there: Ran | None, came_to: str) -> None:
    base = side(1, a=there) if there is not None else side(1)
    assert judge(ASKED, HERE, base, ADDED).tests == {A: came_to}


@pytest.mark.parametrize(
    ("status", "there", "came_to"),
    [
        ("skipped", PASSED, "skipped"), ("skipped", FAILED, "skipped"), ("failed", PASSED, "broken"),
        ("failed", FAILED, "failing"), ("error", PASSED, "broken"), ("failed", None, "failing"),
    ],
)  # fmt: skip
def test_what_a_test_that_does_not_pass_here_comes_to(status: Status, there: Ran | None, came_to: str) -> None:
    base = side(0, a=there) if there is not None else side(0)
    assert judge(ASKED, side(1, a=ran(status)), base, ADDED).tests == {A: came_to}


def test_where_the_base_could_not_run_at_all_nothing_is_shown() -> None:
    base = side(fault="ended with 127: its program was not found", a=FAILED)
    assert judge(ASKED, HERE, base, ADDED).tests == {A: "could_not_run"}
    assert codes(base=base) == ["base_not_run"]
    assert "ended with 127" in said(base=base)


@pytest.mark.parametrize(
    ("where", "name", "path", "hidden"),
    [
        ("", A, "", True),
        ("tests/test_a.py", A, "", True),
        ("tests/test_a.py", "other", "tests/test_a.py", True),
        ("tests", "tests/test_a.py::test_a", "", True),
        ("tests.test_a", "tests.test_a.TestA.test", "", True),
        ("test_a", "tests.test_a.TestA.test", "", True),
        ("tests/test_a", "tests/test_ab.py::test", "", False),
        ("test_a", "tests.test_ab.TestA.test", "", False),
        ("tests/test_b.py", A, "tests/test_a.py", False),
        ("a/b", "x.a/b.y", "", False),
    ],
)
def test_an_obstacle_counts_for_the_tests_behind_it(where: str, name: str, path: str, hidden: bool) -> None:
    base = side(1, obstacles=(Obstacle(where, MISSING),))
    here = Side(TestReport("pytest", {name: ran(path=path)}))
    assert judge(ASKED, here, base, ADDED).tests == {name: "needed" if hidden else "could_not_run"}


def test_an_obstacle_for_another_reason_shows_nothing_and_is_told() -> None:
    base = side(2, obstacles=(Obstacle("tests/test_a.py", "x\nSyntaxError: invalid\n\n"),))
    assert codes(base=base) == ["base_not_run"]
    assert said(base=base) == f"{A} could not run at the base, which says 'SyntaxError: invalid'"
    assert said(base=side(1)).endswith("which says 'the end'")
    assert said(base=Side(TestReport("pytest"), 1)) == f"{A} could not run at the base"


def test_what_passes_without_the_change_proves_nothing() -> None:
    assert codes(base=side(a=PASSED)) == ["proof_not_needed"]
    assert said(base=side(a=PASSED)) == f"{A} also passes without the change"


def test_one_needed_test_is_enough_beside_kept_ones() -> None:
    here, base = side(a=PASSED, b=ran(touched="")), side(1, a=FAILED, b=PASSED)
    judged = judge(ASKED, here, base, ADDED)
    assert (judged.faults, judged.tests) == ((), {A: "needed", B: "kept"})
    assert codes(here=side(a=PASSED, b=PASSED), base=side(a=PASSED)) == ["base_not_run"]


# --- executing the change ---


def test_a_needed_test_has_to_execute_the_change() -> None:
    blind = side(a=ran(touched=""))
    assert codes(here=blind) == ["change_not_executed"]
    assert said(here=blind) == f"{A} would fail without the change, but executes none of the changed lines"


def test_a_kept_test_that_executes_the_change_is_no_help() -> None:
    here, base = side(a=ran(touched=""), b=PASSED), side(1, a=FAILED, b=PASSED)
    assert codes(here=here, base=base) == ["change_not_executed"]


@pytest.mark.parametrize(
    ("here", "added"),
    [
        (side(a=ran(touched=""), measured=False), ADDED),
        (side(a=ran(touched="")), Additions()),
        (side(a=ran(touched="", started=("git log", "sh ./src/greet.py Ann"))), ADDED),
    ],
)
def test_where_nobody_could_watch_it_is_marked(here: Side, added: Additions) -> None:
    judged = judge(ASKED, here, THERE, added)
    assert (judged.faults, judged.execution) == ((), "not measured")


def test_a_program_that_is_none_of_the_change_is_no_excuse() -> None:
    assert codes(here=side(a=ran(touched="", started=("git log", "true")))) == ["change_not_executed"]


# --- what is refused whatever the base says ---


def test_a_command_that_did_not_come_to_an_end() -> None:
    assert codes(here=side(fault="was terminated by signal 9", a=PASSED)) == ["proof_not_run"]
    assert said(here=side(fault="was terminated by signal 9")) == f"{RUN} was terminated by signal 9"


def test_no_test_executed() -> None:
    assert codes(here=side()) == ["no_test_executed"]
    assert said(here=side()) == f"{RUN} executed no test"
    assert said(here=side(a=ran("skipped"), b=ran("skipped"))) == f"{RUN} executed no test; 2 were skipped"
    assert codes(here=side(5)) == ["no_test_executed"]


def test_a_failed_test_wherever_it_is() -> None:
    here = side(1, a=PASSED, b=ran("failed", "x\nAssertionError: no\n"))
    assert codes(here=here) == ["test_failed"]
    assert said(here=here) == f"{B} failed, saying 'AssertionError: no'"
    assert said(here=side(1, b=ran("error"))) == f"{B} failed"
    assert codes(AskedProof(RUN, tests=[A]), here) == ["test_failed"]
    many = {f"t{number}": ran("failed") for number in range(5)}
    assert said(here=Side(TestReport("pytest", many), 1)) == "t0, t1, t2 and 2 more failed"


def test_an_exit_code_that_says_otherwise() -> None:
    assert codes(here=side(3, a=PASSED)) == ["test_failed"]
    assert said(here=side(3, a=PASSED)) == f"{RUN} ended with 3"


def test_a_named_test_that_did_not_run() -> None:
    assert codes(AskedProof(RUN, tests=[A, B])) == ["test_not_run"]
    assert said(AskedProof(RUN, tests=[A, B])) == f"{B} did not run"
    here = side(a=PASSED, b=ran("skipped"))
    assert said(AskedProof(RUN, tests=[A, B]), here) == f"{B} was skipped"
    assert codes(AskedProof(RUN, tests=["tests/c.py", B])) == ["test_not_run", "test_not_run"]


def test_named_tests_alone_are_compared() -> None:
    here, base = side(a=PASSED, b=PASSED), side(1, a=FAILED, b=PASSED)
    assert judge(AskedProof(RUN, tests=[A]), here, base, ADDED).tests == {A: "needed"}
    assert codes(AskedProof(RUN, tests=[B]), here, base) == ["proof_not_needed"]
    assert codes(AskedProof(RUN, tests=[A, B]), here, base) == []


def test_tests_below_a_path_alone_are_compared() -> None:
    here = side(a=ran(path="tests/one/test_a.py"), b=ran(path="tests/two/test_b.py"), c=ran())
    base = side(1, a=FAILED, b=PASSED, c=PASSED)
    assert judge(AskedProof(RUN, paths=["tests/one/"]), here, base, ADDED).tests == {A: "needed", "c": "kept"}
    assert judge(AskedProof(RUN, paths=["./tests/two/test_b.py"]), here, base, ADDED).tests == {B: "kept", "c": "kept"}
    nowhere = side(a=ran(path="tests/one/test_a.py"))
    assert said(AskedProof(RUN, paths=["tests/on", "x"]), nowhere, base) == "no test in tests/on, x ran"


@pytest.mark.parametrize(
    ("name", "test", "named"),
    [
        (A, A, True), (A, "tests/test_a.py", True), ("a.py::T::x", "a.py::T", True), ("a.py::x[1]", "a.py::x", True),
        ("t.m.T.x", "t.m", True), ("p/q::x", "p", True), ("a.py::xy", "a.py::x", False), (A, "test_a", False),
        ("b/test_a.py::test_a", "a/test_a.py::test_a", False), ("x/a.js::a b", "a b", True), ("p.TestX", "TestX", True),
        ("p.TestXY", "TestX", False), ("p.XTestX", "TestX", False), ("x/a.js::a/b", "a/b", False),
        ("c::d::e", "d::e", False), ("tests/a.py.x", "x", True),
    ],
)  # fmt: skip
def test_which_test_the_contract_means(name: str, test: str, named: bool) -> None:
    assert is_named(name, test) is named


# --- exempt ---


def test_an_exempt_criterion_needs_tests_that_pass_and_no_base() -> None:
    asked = AskedProof(RUN, exempt="a refactoring")
    judged = judge(asked, side(a=ran(touched="")), None, ADDED)
    assert (judged.faults, judged.tests, judged.execution) == ((), {A: "kept"}, "")
    assert codes(asked, side(1, a=FAILED), None) == ["test_failed"]
    assert codes(asked, side(), None) == ["no_test_executed"]
    assert codes(asked, side(a=ran(touched="")), side(a=PASSED)) == []


def test_without_a_base_nothing_is_needed() -> None:
    assert judge(ASKED, HERE, None, ADDED).tests == {A: "kept"}


# --- by exit code alone ---


def alone(exit_code: int, output: str = "") -> Side:
    return Side(by_exit_code("sh tests/check.sh", exit_code, output), exit_code, "", output)


def test_a_command_by_its_exit_code_alone() -> None:
    asked = AskedProof("sh tests/check.sh")
    judged = judge(asked, alone(0), alone(1), ADDED)
    assert (judged.faults, judged.runner, judged.execution) == ((), "exit code", "not measured")
    assert codes(asked, alone(0), alone(0)) == ["proof_not_needed"]
    assert codes(asked, alone(1), alone(1)) == ["test_failed"]


def test_a_command_that_reports_nothing_cannot_show_that_a_named_test_ran() -> None:
    asked = AskedProof("sh tests/check.sh", tests=[A])
    assert codes(asked, alone(0), alone(1)) == ["no_test_executed"]
    assert (
        said(asked, alone(0), alone(1))
        == f"sh tests/check.sh does not report its tests, so it is unknown whether {A} ran"
    )


def test_a_command_whose_own_file_is_missing_could_not_run() -> None:
    added = Additions(paths=frozenset({"tests/check.sh", "src/greet.sh"}))
    asked = AskedProof("sh tests/check.sh")
    own = "sh: 0: cannot open tests/check.sh: No such file or directory"
    other = "sh: 0: cannot open src/greet.sh: No such file or directory"
    assert codes(asked, alone(0), alone(2, own), added) == ["base_not_run"]
    assert codes(asked, alone(0), alone(2, other), added) == []


def test_what_a_runner_reports_may_name_a_file_of_its_command() -> None:
    added = Additions(paths=frozenset({"tests"}), lines={"x.py": (1,)})
    base = side(1, a=ran("failed", "FileNotFoundError: No such file or directory: 'tests'"))
    assert codes(base=base, added=added) == []


# --- the controls: needed tests, run once more ---


def controlled(
    *, here: Side = HERE, again: Side | None = None, emptied: tuple[Side, ...] = ()
) -> tuple[list[str], str]:
    judged = judge(ASKED, here, side(1, a=FAILED, b=FAILED), ADDED, Controls(again, emptied))
    return [fault.code for fault in judged.faults], " ".join(fault.message for fault in judged.faults)


def test_a_needed_test_notices_that_the_new_functions_are_empty() -> None:
    named = side(a=Ran("passed", touched="src/greet.py:1", mentions=("ciao", "Greeter")))
    codes, said = controlled(here=named, emptied=(HERE, HERE))
    assert (codes, said) == (["proof_not_needed"], f"{A} passes whatever Greeter, ciao returns")
    for noticed in ((HERE, THERE), (THERE, HERE), (HERE, side()), (THERE,), (), (HERE, side(a=ran("skipped")))):
        assert controlled(here=named, emptied=noticed) == ([], "")


def test_one_test_that_notices_is_enough_and_the_other_is_kept() -> None:
    judged = judge(ASKED, side(a=PASSED, b=PASSED), side(1, a=FAILED, b=FAILED), ADDED, Controls(None, (HERE,)))
    assert (judged.faults, judged.tests) == ((), {A: "kept", B: "needed"})


def test_a_needed_test_passes_again() -> None:
    assert controlled(again=HERE) == ([], "")
    for once in (THERE, side(), side(a=ran("skipped"))):
        assert controlled(again=once) == (["test_failed"], f"{A} passed, but failed when run again")
    # Of a test that is not needed nothing is asked again.
    judged = judge(ASKED, side(a=PASSED, b=PASSED), side(1, a=FAILED, b=PASSED), ADDED, Controls(HERE))
    assert (judged.faults, judged.tests) == ((), {A: "needed", B: "kept"})


# --- what small changes of the code would do ---


def test_a_side_succeeds_unless_it_says_otherwise() -> None:
    assert Side(TestReport("pytest")).exit_code == 0


def test_without_a_base_nothing_is_said_of_need() -> None:
    judged = judge(ASKED, HERE, None, ADDED)
    assert (judged.faults, judged.tests, judged.needed) == ((), {A: "kept"}, ())


def test_only_needed_tests_are_named_as_such() -> None:
    judged = judge(ASKED, side(a=PASSED, b=PASSED), side(1, a=FAILED, b=PASSED), ADDED)
    assert judged.needed == (A,)


def test_a_test_that_could_not_run_stays_one_that_passes_with_emptied_functions() -> None:
    both = side(a=PASSED, b=PASSED)
    judged = judge(ASKED, both, side(1, a=FAILED, b=ran("error", "Boom")), ADDED, Controls(None, (both,)))
    assert (judged.tests, [fault.code for fault in judged.faults]) == (
        {A: "kept", B: "could_not_run"},
        ["proof_not_needed"],
    )


def test_a_test_in_one_of_the_paths_is_meant() -> None:
    asked = AskedProof(RUN, paths=("tests/box/", "other"))
    assert codes(asked, side(a=ran(path="tests/box/test_a.py"))) == []
    assert codes(asked, side(a=ran(path="tests/bo/test_a.py"))) == ["test_not_run"]


def test_the_tests_of_a_base_that_could_not_run_say_nothing() -> None:
    assert codes(base=side(fault="was ended", a=PASSED)) == ["base_not_run"]


def test_each_obstacle_is_read_by_itself() -> None:
    obstacles = (Obstacle("", "first"), Obstacle("", "ciao is not a function"))
    assert codes(here=side(a=ran(path="tests/test_a.py")), base=side(1, obstacles=obstacles)) == []


def test_of_tests_that_are_not_needed_those_that_passed_are_told() -> None:
    both = side(a=PASSED, b=ran("skipped"))
    assert said(here=both, base=both) == f"{A} also passes without the change"


def test_one_needed_test_that_touches_the_change_is_enough() -> None:
    both = side(a=PASSED, b=ran(touched=""))
    judged = judge(ASKED, both, side(1, a=FAILED, b=FAILED), ADDED)
    assert (judged.faults, judged.execution) == ((), "measured")


def test_three_tests_are_told_and_long_words_are_cut() -> None:
    failed = ran("failed", "e" * 300)
    assert said(here=side(1, t1=failed, t2=failed, t3=failed)) == f"t1, t2, t3 failed, saying {'e' * 200!r}"
