"""A submission whose contract demands proofs: its tests are run here and at the base, and the log says which."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from lifecycle.governed import TOKENS_COUNT, Governed

NAME = "WP-1-Greeting-v1"
STUB = f".GOV/task_packets/stubs/{NAME}.md"
PACKET = f".GOV/task_packets/{NAME}.md"
RUN = f"{sys.executable} -m pytest -q -p no:cacheprovider tests/test_greet.py"
# Those of the plugins that are installed here would be loaded into each of the many runs.
BARE = '\n[evidence]\nenv = ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"]\n'
REQUIRED = BARE + 'tests = "required"\n'
TEST = "from src.greet import greet\n\n\ndef test_name():\n    assert greet('Ann') == 'Hello Ann'\n"
GREET = "def greet(name):\n    return 'Hello ' + name\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the proofs are written for a POSIX system")


def at_work(
    governed: Governed, first: str, second: str = "EXEMPT: it is seen by looking", more: str = REQUIRED
) -> None:
    """A packet in work whose two criteria have these demands."""
    governed.begin(policy=TOKENS_COUNT + more)
    stub(governed, first, second)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.done("create-task-packet", NAME)
    governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    governed.done("packet", "prepare", NAME, "--for", "coder")
    governed.done("claim", NAME, "--as", "coder")
    governed.commit("claimed")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.git("merge", "--quiet", "main")


def stub(governed: Governed, first: str, second: str) -> None:
    governed.stub(NAME)
    governed.replace(STUB, "  - `src/`", "  - `src/`\n  - `tests/`")
    for criterion, demand in (("- The name is printed.", first), ("- It ends with a line feed.", second)):
        governed.replace(STUB, criterion, f"{criterion}\n  - {demand}" if demand else criterion)


def do(governed: Governed, test: str = TEST, greet: str = GREET) -> None:
    governed.write("src/greet.py", greet)
    governed.write("tests/test_greet.py", test)
    governed.commit("Greet")


def rows(governed: Governed) -> list[dict[str, Any]]:
    listed = governed.state(NAME).evidence[-1].data["evidence"]
    assert isinstance(listed, list)
    return [dict(row) for row in listed if isinstance(row, dict)]


def test_what_the_contract_demands_is_run_by_itself_and_recorded_by_test(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`")
    do(governed)
    governed.done("submit", NAME, "--as", "coder")
    proved, exempt = rows(governed)
    assert (proved["runner"], proved["needed"]) == ("pytest", ["tests/test_greet.py::test_name"])
    assert (proved["outcomes"], proved["execution"]) == ({"needed": 1}, "measured")
    assert proved["base"] == governed.git("merge-base", "main", "HEAD").strip()
    assert exempt["exempt"] == "it is seen by looking"
    assert not any("Hello" in str(value) for value in proved.values())
    governed.commit("submitted")
    assert governed("check", "--base", "main").status == 0


@pytest.mark.long
def test_a_hollow_test_is_refused_and_nothing_is_recorded(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`")
    do(governed, "def test_name():\n    assert True\n")
    assert governed.refused("submit", NAME, "--as", "coder") == ["proof_not_needed"]
    do(governed, "import pytest\n\n\n@pytest.mark.skip\ndef test_name():\n    assert True\n")
    assert governed.refused("submit", NAME, "--as", "coder") == ["no_test_executed"]
    do(governed, TEST.replace("== 'Hello Ann'", "== 'Hallo'"))
    assert governed.refused("submit", NAME, "--as", "coder") == ["test_failed"]


def test_another_proof_than_the_approved_one_is_refused(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`")
    do(governed)
    result = governed("submit", NAME, "--as", "coder", "--prove", "1=true")
    assert (result.status, result.codes) == (3, ["proof_other_command"])


@pytest.mark.parametrize(
    ("demand", "code"),
    [("", "proof_undeclared"), ("TESTS: test_name", "proof_undeclared"), ("PROVED_BY: `true`", "proof_trivial")],
)
def test_a_contract_without_a_proof_is_not_activated(governed: Governed, demand: str, code: str) -> None:
    governed.begin(policy=TOKENS_COUNT + REQUIRED)
    stub(governed, demand, "EXEMPT: it is seen by looking")
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    assert governed.refused("create-task-packet", NAME) == [code]


@pytest.mark.long
def test_a_demand_binds_where_the_policy_asks_for_none(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`", "", more=BARE)
    do(governed, "def test_name():\n    assert True\n")
    assert governed.refused("submit", NAME, "--as", "coder", "--prove", "all=true") == ["proof_not_needed"]
    do(governed)
    said = governed.done("submit", NAME, "--as", "coder", "--prove", "all=true").out
    assert "1 proof accepted by exit code alone" in said
    assert [row.get("runner") for row in rows(governed)] == [None, "pytest"]


def test_other_conditions_come_before_a_proof_that_takes_long(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`")
    do(governed)
    governed.write("lib/other.py", "X = 1\n")
    governed.commit("While I am here")
    result = governed("submit", NAME, "--as", "coder")
    assert result.codes == ["outside_scope", "evidence_missing", "evidence_missing"]
    assert "was not run because other conditions must be met first" in result.err


@pytest.mark.long
def test_a_box_that_is_not_ticked_says_that_it_is_not_done(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`")
    do(governed)
    governed.replace(PACKET, "- It ends with", "- [ ] It ends with")
    governed.commit("A box")
    assert "criterion_unticked" in governed.refused("submit", NAME, "--as", "coder")
    governed.replace(PACKET, "- [ ] It ends with", "- [x] It ends with")
    governed.commit("Done")
    governed.done("submit", NAME, "--as", "coder")


def test_what_prepares_the_trees_may_not_fail(governed: Governed) -> None:
    at_work(governed, f"PROVED_BY: `{RUN}`", more=REQUIRED + 'setup = ["false"]\n')
    do(governed)
    result = governed("submit", NAME, "--as", "coder")
    assert (result.status, result.codes) == (6, ["proof_setup_failed"])
