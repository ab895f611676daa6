"""`show` tells what an agent or a person needs to work on a packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern

NAME = "WP-1-Greeting-v1"
OTHER = "WP-1-Other-v1"
PACKET = f".GOV/task_packets/{NAME}.md"


@pytest.fixture
def governed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Governed:
    return govern(tmp_path, monkeypatch, capsys)


def rows(governed: Governed, *words: str) -> dict[str, str]:
    """The lines of an answer by their labels; those without one belong to the label above."""
    found: dict[str, str] = {}
    label = ""
    for line in governed.done("show", NAME, *words).out.splitlines()[1:-1]:
        label = line[:13].strip() or label
        found[label] = f"{found[label]}\n{line[13:]}" if label in found else line[13:]
    return found


@pytest.fixture
def stub(governed: Governed) -> Governed:
    governed.begin()
    governed.stub(NAME)
    return governed


def test_a_stub_tells_its_task_and_what_activation_requires(stub: Governed) -> None:
    answer = stub.done("show", NAME)
    assert answer.out.splitlines()[0] == f"{NAME} is STUB"
    assert answer.next == f"workpacket why {NAME}"
    shown = rows(stub)
    assert shown["what"] == "Greet the user"
    assert shown["why"] == "People like it"
    assert shown["done when"] == "1. [open] The name is printed.\n2. [open] It ends with a line feed."
    assert shown["scope"].startswith("The greeting itself.") or "src/" in shown["scope"]
    assert "refinement_missing" in shown["missing"]


def test_criteria_say_how_far_they_are_proved(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--record-only", "--prove", "1=python3 src/greet.py", "--as", "coder")
    one, two = rows(governed)["done when"].splitlines()
    assert one.startswith("1. [proved] The name is printed. (python3 src/greet.py at ")
    assert two == "2. [open] It ends with a line feed."
    told = governed.json("show", NAME)["data"]["criteria"]
    assert [(each["number"], each["state"], each["exit_code"]) for each in told] == [
        (1, "proved", 0),
        (2, "open", None),
    ]


def test_what_was_proved_before_the_packet_was_claimed_again_is_open(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--record-only", "--prove", "1=python3 src/greet.py", "--as", "coder")
    governed.done("packet", "release", NAME, "--reason", "ill", "--as", "coder")
    governed.done("claim", NAME, "--as", "coder")
    assert [each["state"] for each in governed.json("show", NAME)["data"]["criteria"]] == ["open", "open"]


def test_dependencies_are_named_with_their_lanes(governed: Governed) -> None:
    governed.begin()
    governed.stub(OTHER)
    governed.stub(NAME, depends=f"Depends on: {OTHER}")
    assert rows(governed)["depends on"] == f"{OTHER} (STUB)"
    assert governed.json("show", NAME)["data"]["depends"] == [{"id": OTHER, "lane": "STUB"}]


def test_who_holds_it_is_on_the_first_line(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    data = governed.json("show", NAME)["data"]
    assert data["holder"] == "coder"
    assert governed.done("show", NAME).out.startswith(f"{NAME} is IN_PROGRESS, held by coder")
    assert data["branch"] == f"wp/{NAME}"


def test_a_document_that_states_no_contract_says_why(stub: Governed) -> None:
    path = f".GOV/task_packets/stubs/{NAME}.md"
    stub.write(path, stub.read(path) + "\n## INTENT (DRAFT)\n- What: Something else.\n")
    assert "appears twice" in rows(stub)["unreadable"]
    assert stub.json("show", NAME)["data"]["what"] == ""


def test_long_lists_are_whole_on_request(stub: Governed) -> None:
    path = f".GOV/task_packets/stubs/{NAME}.md"
    many = "\n".join(f"  - `src/{letter}/`" for letter in "abcdefghijkl")
    stub.replace(path, "  - `src/`", many)
    assert rows(stub)["scope"].endswith("and 5 more (--full)")
    assert "src/l/" in rows(stub, "--full")["scope"]


def test_an_earlier_time_shows_the_log_and_nothing_of_now(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    created = governed.state(NAME).history[0].id
    governed.work(NAME)
    assert governed.done("show", NAME, "--at", created[:12]).out.startswith(f"{NAME} is STUB\n")
    data = governed.json("show", NAME, "--at", created[:12])["data"]
    assert (data["lane"], data["holder"], data["what"], data["unmet"], data["events"]) == ("STUB", "", "", [], 1)
