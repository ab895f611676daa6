"""`show` tells what an agent or a person needs to work on a packet."""

from __future__ import annotations

from pathlib import Path

import pytest

from lifecycle.governed import Governed, govern
from workpacket.cli import show
from workpacket.cli.options import Arguments
from workpacket.cli.workspace import Output
from workpacket.shell import cache
from workpacket.shell.cache import Cache

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


class TestCache:
    @pytest.fixture(autouse=True)
    def at_rest(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files written by a test count as being at rest: only their ctime would say otherwise."""
        monkeypatch.setattr(cache, "RACY_NS", -(10**18))

    @pytest.fixture
    def computed(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """A word for each answer that was computed."""
        found: list[str] = []
        original = show.compute

        def counted(arguments: Arguments, cache: Cache) -> Output:
            found.append("computed")
            return original(arguments, cache)

        monkeypatch.setattr(show, "compute", counted)
        return found

    @pytest.fixture
    def ready(self, governed: Governed) -> Governed:
        governed.begin()
        governed.activate(NAME)
        return governed

    @pytest.mark.parametrize("words", [(), ("--json",), ("--full",)])
    def test_the_second_answer_is_the_first_one(
        self, ready: Governed, computed: list[str], words: tuple[str, ...]
    ) -> None:
        first = ready.done("show", NAME, *words, "--as", "coder")
        assert ready.done("show", NAME, *words, "--as", "coder") == first
        assert computed == ["computed"]

    def test_a_changed_document_a_new_event_and_a_new_commit_are_seen(
        self, ready: Governed, computed: list[str]
    ) -> None:
        ready.done("show", NAME)
        ready.replace(PACKET, "Greet the user", "Greet everybody")
        assert "Greet everybody" in ready.done("show", NAME).out
        events = len(ready.state(NAME).history)
        ready.done("note", NAME, "A word", "--as", "coder")
        assert f"\n{events + 1} events" in ready.done("show", NAME).out
        ready.commit("everything")
        ready.done("show", NAME)
        assert computed == ["computed"] * 4

    def test_another_actor_is_another_request(
        self, ready: Governed, computed: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("ada", "grace", "ada"):
            monkeypatch.setenv("WORKPACKET_ACTOR", name)
            ready.done("show", NAME)
        ready.done("show", NAME, "--as", "grace")
        assert computed == ["computed"] * 3

    def test_the_name_in_the_settings_of_the_account_counts(
        self, ready: Governed, computed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        settings = tmp_path / "of-the-account"
        settings.write_text("[user]\nname = Ada\n")
        monkeypatch.delenv("WORKPACKET_ACTOR", raising=False)
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
        ready.done("show", NAME)
        ready.done("show", NAME)
        assert computed == ["computed"]
        settings.write_text("[user]\nname = Grace Hopper\n")
        ready.done("show", NAME)
        assert computed == ["computed"] * 2
        settings.write_text("[include]\npath = elsewhere\n[user]\nname = Ada\n")
        ready.done("show", NAME)
        ready.done("show", NAME)
        assert computed == ["computed"] * 4, "what git includes is not listed, so nothing may be cached"

    def test_an_answer_about_work_in_review_is_kept_until_the_lease_ends(
        self, ready: Governed, computed: list[str]
    ) -> None:
        ready.work(NAME)
        ready.done("submit", NAME, "--as", "coder", "--prove", "all=true")
        ready.commit("Submitted")
        first = ready.done("show", NAME)
        assert ready.done("show", NAME) == first
        assert computed == ["computed"]
        ready.clock.turn(hours=100)
        ready.done("show", NAME)
        assert computed == ["computed"] * 2

    def test_an_approval_may_end_so_an_answer_about_one_is_computed_every_time(
        self, stub: Governed, computed: list[str]
    ) -> None:
        stub.done("show", NAME)
        stub.done("show", NAME)
        assert computed == ["computed"] * 2

    def test_work_in_progress_is_compared_with_the_work_tree_every_time(
        self, governed: Governed, computed: list[str]
    ) -> None:
        governed.begin()
        governed.activate(NAME)
        governed.work(NAME)
        governed.done("show", NAME, "--as", "coder")
        governed.write("src/greet.py", "print('changed')\n")
        assert "work_uncommitted" in governed.done("show", NAME, "--as", "coder").out
        assert computed == ["computed"] * 2

    def test_work_in_progress_is_computed_once_for_the_same_work_tree(
        self, governed: Governed, computed: list[str]
    ) -> None:
        governed.begin()
        governed.activate(NAME)
        governed.work(NAME)
        first = governed.done("show", NAME)
        assert (governed.done("show", NAME), computed) == (first, ["computed"])
        governed.write("src/greet.py", "print('changed')\n")
        assert "work_uncommitted" in governed.done("show", NAME).out
        governed.commit("Changed")
        assert "work_uncommitted" not in governed.done("show", NAME).out
        governed.clock.turn(hours=100)
        governed.done("show", NAME)
        assert computed == ["computed"] * 4

    def test_work_in_progress_is_computed_every_time_on_another_branch(
        self, governed: Governed, computed: list[str]
    ) -> None:
        governed.begin()
        governed.activate(NAME)
        governed.work(NAME)
        governed.git("switch", "--quiet", "--create", "other")
        governed.done("show", NAME)
        governed.done("show", NAME)
        assert computed == ["computed"] * 2
