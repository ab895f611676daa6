"""The next batch: an invariant for any scope, and a table of what is decided how."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.documents.batch import PENDING, SATISFIED, STATUSES, UNDER_WAY, Task
from workpacket.documents.batch_scope import PhasePolicy, normal_path, overlap, plan, structural_problems

NAMES = [f"T{number}" for number in range(1, 8)]
PATHS = [
    "src/a.py",
    "./src/a.py",
    "src/b.py",
    "src/",
    "src/c/../b.py",
    "tests/a.py",
    "SRC/A.PY",
    "docs/*.md",
    "docs/x.md",
]

policies = st.sampled_from(["dag", "barrier"])
statuses = st.sampled_from(sorted(STATUSES))


@st.composite
def scopes(draw: st.DrawFn) -> list[Task]:
    """Tasks that depend on earlier ones only, in whatever order, so that the scope is sound."""
    count = draw(st.integers(0, len(NAMES)))
    tasks = [
        Task(
            NAMES[index],
            draw(statuses),
            tuple(draw(st.lists(st.sampled_from(NAMES[:index]), max_size=3))) if index else (),
            tuple(draw(st.lists(st.sampled_from(PATHS), max_size=2))),
            draw(st.sampled_from(["", "one", "two"])),
        )
        for index in range(count)
    ]
    return draw(st.permutations(tasks))


@given(scopes(), policies)
def test_a_next_batch_is_pending_ready_and_touches_no_file_twice(tasks: list[Task], policy: PhasePolicy) -> None:
    found = plan(tasks, policy)
    by_id = {task.id: task for task in tasks}
    batch = [by_id[name] for name in found.batch]

    assert found.satisfied.isdisjoint(found.pending)
    assert {*found.satisfied, *found.pending} <= by_id.keys()
    assert set(found.batch) <= set(found.ready) <= set(found.pending)
    assert all(found.satisfied.issuperset(task.depends_on) for task in batch)
    assert len(batch) == 1 or all(task.files for task in batch)
    for index, task in enumerate(batch):
        for other in batch[:index]:
            assert not any(overlap(normal_path(a), normal_path(b)) for a in task.files for b in other.files)


@given(scopes(), policies)
def test_work_goes_on_until_nothing_is_left_or_a_deadlock_is_named(tasks: list[Task], policy: PhasePolicy) -> None:
    found = plan(tasks, policy)
    under_way = any(task.status in UNDER_WAY for task in tasks)

    assert {problem.code for problem in found.problems} <= {"batch_dependency_deadlock"}
    if not found.pending or under_way:
        assert not found.problems
    else:
        assert bool(found.batch) is not bool(found.problems)


@given(scopes())
def test_doing_every_next_batch_ends(tasks: list[Task]) -> None:
    left = list(tasks)
    for _ in range(len(tasks) + 1):
        batch = plan(left).batch
        left = [Task(t.id, "done", t.depends_on, t.files) if t.id in batch else t for t in left]
    assert plan(left).batch == ()


@given(scopes())
def test_a_batch_is_as_large_as_the_files_let_it_be(tasks: list[Task]) -> None:
    found = plan(tasks)
    by_id = {task.id: task for task in tasks}
    taken = [normal_path(path) for name in found.batch for path in by_id[name].files]
    for name in found.ready:
        if found.batch and name not in found.batch and by_id[found.batch[0]].files:
            paths = [normal_path(path) for path in by_id[name].files]
            assert not paths or any(overlap(path, other) for path in paths for other in taken)


@given(
    st.lists(st.builds(Task, st.sampled_from(NAMES), statuses, st.lists(st.sampled_from([*NAMES, "T9"])).map(tuple)))
)
def test_an_impossible_scope_is_never_planned(tasks: list[Task]) -> None:
    found = plan(tasks)

    assert bool(found.problems) is bool(tuple(structural_problems(tasks))) or not found.batch
    assert not (found.problems and found.batch)


def ids(tasks: Sequence[Task]) -> list[str]:
    return list(plan(tasks).batch)


def task(name: str, *depends_on: str, status: str = "pending", files: str = "", phase: str = "") -> Task:
    return Task(name, status, depends_on, tuple(files.split()), phase)


@pytest.mark.parametrize(
    ("tasks", "batch"),
    [
        pytest.param([task("A"), task("B", files="b")], ["A"], id="without files alone"),
        pytest.param([task("B", files="b"), task("A"), task("C", files="c")], ["B", "C"], id="without files later"),
        pytest.param([task("A", files="a"), task("B", files="./a")], ["A"], id="one file written twice"),
        pytest.param([task("A", files="src"), task("B", files="src/b")], ["A"], id="a folder and a file in it"),
        pytest.param([task("A", files="src"), task("B", files="srcs/b")], ["A", "B"], id="names that begin alike"),
        pytest.param([task("A", status="deferred"), task("B", "A"), task("C")], ["C"], id="deferred satisfies nothing"),
        pytest.param([task("A", status="descoped"), task("B", "A")], ["B"], id="descoped satisfies"),
        pytest.param([task("B", "A"), task("A", status="completed")], ["B"], id="order of the file, not of need"),
        pytest.param([task("A", status="in_progress"), task("B", "A")], [], id="under way"),
        pytest.param([task("A", "other:T1"), task("B")], ["B"], id="another scope is waited for"),
    ],
)
def test_what_comes_next(tasks: list[Task], batch: list[str]) -> None:
    assert ids(tasks) == batch


def test_a_batch_is_parallel_when_it_has_more_than_one_task() -> None:
    assert plan([task("A", files="a"), task("B", files="b")]).parallel
    assert not plan([task("A", files="a")]).parallel


def test_a_barrier_keeps_later_phases_waiting_and_the_graph_alone_does_not() -> None:
    tasks = [task("A", phase="one", files="a"), task("B", phase="two", files="b"), task("C", files="c")]

    assert plan(tasks, "dag").batch == ("A", "B", "C")
    assert plan(tasks, "barrier").batch == ("A", "C")


@pytest.mark.parametrize("over", ["done", "deferred"])
def test_a_barrier_opens_when_the_phase_before_is_over(over: str) -> None:
    tasks = [task("A", status=over, phase="one"), task("B", phase="two")]

    assert plan(tasks, "barrier").batch == ("B",)


@pytest.mark.parametrize(
    ("tasks", "code", "names"),
    [
        ([task("A"), task("A"), task("A")], "batch_task_twice", ("A",)),
        ([task("A", "B")], "batch_dependency_unknown", ("A", "B")),
        ([task("A", "B"), task("B", "C"), task("C", "A")], "batch_dependency_cycle", ("A", "B", "C", "A")),
        ([task("A", "A")], "batch_dependency_cycle", ("A", "A")),
        ([task("A", status="deferred"), task("B", "A")], "batch_dependency_deadlock", ("B",)),
        ([task("A", "other:T1")], "batch_dependency_deadlock", ("A",)),
    ],
)
def test_what_makes_a_plan_impossible_has_a_name(tasks: list[Task], code: str, names: tuple[str, ...]) -> None:
    problems = plan(tasks).problems

    assert [(problem.code, problem.tasks) for problem in problems] == [(code, names)]
    assert ids(tasks) == []


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("./src//a.py", "src/a.py"),
        ("src\\A.py", "src/a.py"),
        ("src/x/../a.py:45", "src/a.py"),
        ("src/**/*.py", "src"),
        ("docs/", "docs"),
        ("**", ""),
    ],
)
def test_a_path_is_compared_without_its_spelling(written: str, normal: str) -> None:
    assert normal_path(written) == normal


def test_a_long_chain_of_tasks_is_no_burden() -> None:
    names = [f"T{number}" for number in range(5_000)]
    chain = [Task(name, "pending", (after,)) for name, after in pairwise(names)]

    assert plan([*chain, Task(names[-1])]).batch == (names[-1],)
    assert not PENDING & SATISFIED
