"""Any sequence of real commands, kills, hand edits and damage to the log, in a real repository.

After each step a judge who shares no code with the rules looks at the files: `check` has to name exactly what the judge
sees, at its place, and nothing besides. Where the log is whole, `board sync` and `registry sync` make everything say
what it says. No event stands in the log whose gate had no evidence.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lifecycle.governed import Quiet, Result, govern
from lifecycle.mortal import dying
from shell.simulated_disk import Killed
from workpacket.ledger.fold import PacketState, fold
from workpacket.ledger.log import Log, read_log
from workpacket.model.lanes import LANES, SECTIONS

FIRST, SECOND, THIRD = "WP-1-First-v1", "WP-1-Second-v1", "WP-1-Third-v1"
NAMES = (FIRST, SECOND, THIRD)
REPORT = "report.md"
BOARD, REGISTRY = ".GOV/roles_shared/TASK_BOARD.md", ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
CODER, JUDGE = ("--as", "coder"), ("--as", "judge")

COMMANDS: dict[str, tuple[str, ...]] = {
    "claim": (*CODER, "--branch", "work"),
    "renew": (*CODER, "--renew"),
    "release": (*CODER, "--reason", "r"),
    "handover": (*CODER, "--reason", "r", "--to", "bob"),
    "submit": (*CODER, "--prove", "all=true"),
    "unproved": CODER,
    "disproved": (*CODER, "--prove", "all=false"),
    "PASS": ("PASS", "--report", REPORT, *JUDGE),
    "own PASS": ("PASS", "--report", REPORT, *CODER),
    "bare PASS": ("PASS", *JUDGE),
    "CHANGES": ("CHANGES", "--reference", "r", *JUDGE),
    "FAIL": ("FAIL", "--report", REPORT, *JUDGE),
    "merged": (),
    "reopen": ("--reason", "r"),
    "block": ("--reason", "r", "--until", "u"),
    "unblock": (),
    "abandon": ("--reason", "r"),
    "supersede": ("--by", SECOND),
    "create-task-packet": (),
}
WORDS = {"renew": "claim", "unproved": "submit", "disproved": "submit"} | dict.fromkeys(
    ("PASS", "own PASS", "bare PASS", "CHANGES", "FAIL"), "verdict"
)
# More than any of these commands makes.
CALLS = 160

# How `check --base` names a file of the log that was touched.
DAMAGE = {"event_edited", "log_file_deleted", "log_file_modified"}

Place = tuple[str, int]


def typed(kind: str, name: str) -> tuple[str, ...]:
    return (WORDS.get(kind, kind), name, *COMMANDS[kind])


def as_often(*, examples: int, steps: int) -> settings:
    """Each history is random and none is made shorter when it fails: what is printed is what happened."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )


@cache
def template() -> tuple[Path, Any]:
    """Two packets that are ready and a stub whose refinement is signed; the clock goes on from where it stopped."""
    root = Path(tempfile.mkdtemp(prefix="workpacket-upsets-"))
    atexit.register(shutil.rmtree, root)
    with pytest.MonkeyPatch.context() as patch:
        made = govern(root, patch, None)
        governed = Quiet(root, None, made.clock)
        governed.begin()
        governed.activate(FIRST)
        governed.activate(SECOND)
        governed.stub(THIRD)
        governed.refine(THIRD)
        governed.done("refine", THIRD, "--present")
        governed.sign(THIRD)
        governed.write(REPORT, "Good.\n")
        governed.commit("to begin with")
        governed.git("switch", "--quiet", "--create", "work")
    return root, made.clock.now


class Upsets(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.folder = Path(tempfile.mkdtemp(prefix="workpacket-upset-"))
        root, now = template()
        made = govern(shutil.copytree(root, self.folder / "repository"), self.patch, None)
        made.clock.now = now
        self.governed = Quiet(made.root, None, made.clock)
        self.whole: dict[str, bytes] = {}  # what damaged files of the log were
        self.prose: dict[str, list[str]] = {}
        self.count = 0

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    # --- commands ---

    @rule(kind=st.sampled_from(sorted(COMMANDS)), name=st.sampled_from(NAMES))
    def command(self, kind: str, name: str) -> None:
        if self.cut_off(kind, name):
            return
        before = self.governed.files()
        result = self.governed(*typed(kind, name))
        if not self.is_refused_for_what_is_deleted(result):
            assert result.status == 3 if name in self.damaged else result.status in {0, 3}, result
        if result.status:
            assert self.governed.files() == before
            assert result.codes, result
        elif kind in {"unproved", "disproved", "own PASS", "bare PASS"}:
            raise AssertionError(result)

    @rule(
        kind=st.sampled_from(sorted(COMMANDS)),
        name=st.sampled_from(NAMES),
        at=st.integers(1, CALLS),
        how=st.sampled_from(("before", "after", "within")),
        then=st.sampled_from(("board", "recover --forward", "recover --back", "the same")),
    )
    def command_that_is_killed(self, kind: str, name: str, at: int, how: str, then: str) -> None:
        if self.cut_off(kind, name):
            return
        before = self.governed.files()
        with dying(at, how), suppress(Killed):
            self.governed(*typed(kind, name))
        left = self.governed.json("log", "recover")["data"]["unfinished"]
        told = [found for found in self.check() if found["code"] == "transaction_unfinished"]
        assert [found["path"] for found in told] == [one["paths"][0] for one in left]
        self.go_on(then, typed(kind, name))
        assert not self.governed.json("log", "recover")["data"]["unfinished"]
        files = self.governed.files()
        assert not [path for path in files if ".workpacket-" in path]
        if then == "recover --back" and left:
            assert files == before

    @rule(
        at=st.integers(1, CALLS), how=st.sampled_from(("before", "after")), drawn=st.sampled_from(("board", "registry"))
    )
    def drawing_that_is_killed(self, at: int, how: str, drawn: str) -> None:
        with dying(at, how), suppress(Killed):
            self.governed(drawn, "sync")
        self.go_on("board", ())

    def is_refused_for_what_is_deleted(self, result: Result) -> bool:
        """Git still holds a deleted event that was committed, and whoever would read it is told so."""
        deleted = any(not (self.governed.root / path).exists() for path in self.whole)
        return deleted and result.status == 6 and result.codes == ["tree_incomplete"]

    def draw(self, drawn: str) -> None:
        result = self.governed(drawn, "sync")
        assert result.status == 0 or self.is_refused_for_what_is_deleted(result), result

    def go_on(self, then: str, words: tuple[str, ...]) -> None:
        if then == "the same":
            result = self.governed(*words)
            assert result.status in {0, 3} or self.is_refused_for_what_is_deleted(result), result
        elif then != "board":
            self.governed.done(*then.split())
        # Whatever came next: a command that writes has finished what was left.
        self.draw("board")
        self.note_drawn()

    # --- hands ---

    @rule(name=st.sampled_from(NAMES), token=st.sampled_from([lane.token for lane in LANES]))
    def type_another_token(self, name: str, token: str) -> None:
        self.edit(BOARD, rf"(\*\*\[{name}\]\*\* - \[)\w+", rf"\g<1>{token}")

    @rule(name=st.sampled_from(NAMES), section=st.sampled_from([section.heading for section in SECTIONS[1:]]))
    def move_an_entry(self, name: str, section: str) -> None:
        text = self.governed.read(BOARD)
        found = re.search(rf"- \*\*\[{name}\]\*\*[^\n]*\n", text)
        if found is not None:
            text = text.replace(found[0], "", 1)
            self.governed.write(BOARD, text.replace(f"## {section}\n", f"## {section}\n{found[0]}", 1))

    @rule(name=st.sampled_from(NAMES[:2]), title=st.sampled_from([lane.title for lane in LANES]))
    def type_another_status(self, name: str, title: str) -> None:
        self.edit(f".GOV/task_packets/{name}.md", r"(\*\*Status:\*\*) [^\n]*", rf"\g<1> {title}")

    @rule(name=st.sampled_from(NAMES), section=st.sampled_from([section.heading for section in SECTIONS[1:]]))
    def type_another_cell(self, name: str, section: str) -> None:
        self.edit(REGISTRY, rf"\| [^|\n]*: {name} \|", f"| {section}: {name} |")

    @rule(path=st.sampled_from((BOARD, REGISTRY, *(f".GOV/task_packets/{name}.md" for name in NAMES[:2]))))
    def write_prose(self, path: str) -> None:
        self.count += 1
        note = f"A note of {self.count}, by hand."
        text = self.governed.read(path)
        place = text.index("\n\n") + 1  # below the title
        self.governed.write(path, f"{text[:place]}\n{note}\n{text[place:]}")
        self.prose.setdefault(path, []).append(note)

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 30))
    def delete_an_event(self, name: str, which: int) -> None:
        path = self.event(name, which)
        self.keep(path)
        (self.governed.root / path).unlink(missing_ok=True)

    @rule(name=st.sampled_from(NAMES), which=st.integers(0, 30), byte=st.integers(0, 300))
    def edit_an_event(self, name: str, which: int, byte: int) -> None:
        path = self.event(name, which)
        data = bytearray(self.keep(path))
        data[byte % len(data)] ^= 1
        (self.governed.root / path).write_bytes(data)

    @precondition(lambda self: self.whole)
    @rule()
    def restore_the_log(self) -> None:
        for path, data in self.whole.items():
            (self.governed.root / path).write_bytes(data)
        self.whole.clear()

    @precondition(lambda self: not self.whole)
    @rule()
    def commit(self) -> None:
        self.governed.commit("as it stands")

    @rule()
    def draw_anew(self) -> None:
        for drawn in ("board", "registry"):
            self.draw(drawn)
        self.note_drawn()

    def note_drawn(self) -> None:
        if not self.whole:
            self.governed.done("board", "registry", "sync")
            assert list(self.judged()) == []

    # --- what must hold ---

    @invariant()
    def check_names_what_is_wrong_and_nothing_else(self) -> None:
        found = self.check()
        places = {(one["path"], one["line"]) for one in found}
        for path in self.whole:
            assert DAMAGE & {one["code"] for one in found if one["path"] == path}, (path, found)
        wrong = dict(self.judged())
        missed = {place: name for place, name in wrong.items() if place not in places and name not in self.damaged}
        assert not missed, (missed, found)
        names = {*wrong.values(), *self.damaged}
        for one in found:
            said = f"{one['path']} {one['message']}"
            place = (one["path"], one["line"])
            if one["code"] in {"placeholder_left", "todo_field"} and "TODO" in self.line(place):
                continue  # what activation leaves for a person to fill in
            assert place in wrong or any(name.removesuffix("-v1") in said for name in names), one

    @invariant()
    def what_people_wrote_is_there(self) -> None:
        for path, notes in self.prose.items():
            text = self.governed.read(path)
            assert all(note in text for note in notes)

    @invariant()
    def no_gate_is_passed_without_its_evidence(self) -> None:
        for name in NAMES:
            state = self.state(name)
            holders: set[str] = set()
            for event in state.history:
                holders |= {event.text("holder") or ""}
                if event.type == "submitted":
                    proofs = event.data["evidence"]
                    assert isinstance(proofs, list)
                    assert proofs
                    assert all(isinstance(proof, dict) and proof["result"] == "met" for proof in proofs)
                if event.type == "verdict.given":
                    assert event.actor.id not in holders
                    assert event.data.get("report") or event.text("reference")
                if event.type == "activated":
                    assert {"refinement.presented"} <= {one.type for one in state.history}

    # --- helpers of this machine ---

    def check(self) -> list[dict[str, Any]]:
        result = self.governed("check", "--base", "HEAD", "--uncommitted", "--json")
        assert result.status in {0, 1, 5}, result
        # Hand edits are judged before anybody commits them, which is said of each file.
        return [one for one in json.loads(result.out)["findings"] if one["code"] != "not_committed"]

    def judged(self) -> Iterator[tuple[Place, str]]:
        """Every place that does not say what the log says, and of which packet."""
        board, registry = (self.governed.read(path).splitlines() for path in (BOARD, REGISTRY))
        section = ""
        for number, line in enumerate(board, 1):
            section = line.removeprefix("## ") if line.startswith("## ") else section
            entry = re.match(r"- \*\*\[(.+?)\]\*\* - \[(\w+)\]", line)
            if entry is not None:
                lane = self.lane(entry[1])
                if entry[2] != lane.token or section.partition(" (")[0].casefold() != lane.section:
                    yield (BOARD, number), entry[1]
        for number, line in enumerate(registry, 1):
            row = re.match(r"\| [^|]+ \| [^|]+ \| ([^|]+): (WP[^|]+) \|", line)
            if row is not None and row[1].partition(" (")[0].casefold() != self.lane(row[2]).section:
                yield (REGISTRY, number), row[2]
        for name in NAMES:
            path = f".GOV/task_packets/{name}.md"
            if (self.governed.root / path).exists():
                for number, line in enumerate(self.governed.read(path).splitlines(), 1):
                    status = re.match(r"- \*\*Status:\*\* (.*)", line)
                    if status is not None and status[1] != self.lane(name).title:
                        yield (path, number), name

    def lane(self, name: str) -> Any:
        token = self.state(name).lane
        return next((lane for lane in LANES if lane.token == token), LANES[0])

    def line(self, place: Place) -> str:
        return self.governed.read(place[0]).splitlines()[place[1] - 1]

    def state(self, name: str) -> PacketState:
        """What the log says that people have not touched."""
        folder = f".GOV/log/{name}"
        files = {path.name: path.read_bytes() for path in (self.governed.root / folder).iterdir()}
        for path, data in self.whole.items():
            if path.startswith(f"{folder}/"):
                files[path.rpartition("/")[2]] = data
        return fold(read_log(name, files))

    @property
    def damaged(self) -> set[str]:
        """The packets of whose log something is missing or edited."""
        return {path.split("/")[2] for path in self.whole}

    def cut_off(self, kind: str, name: str) -> bool:
        """Whether the end of a log is missing that the command reads: it would take what is left for the whole."""
        read = {name, SECOND} if kind == "supersede" else {name}
        return any(self.lying(one).sound for one in read & self.damaged)

    def lying(self, name: str) -> Log:
        """The log as it lies there, damage and all."""
        folder = self.governed.root / ".GOV" / "log" / name
        return read_log(name, {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {})

    def keep(self, path: str) -> bytes:
        """The bytes of an event before anybody touched it."""
        if path not in self.whole:
            self.whole[path] = (self.governed.root / path).read_bytes()
        return self.whole[path]

    def event(self, name: str, which: int) -> str:
        """One that is committed, or nobody could know that it was there."""
        listed = self.governed.git("ls-tree", "-r", "--name-only", "HEAD", f".GOV/log/{name}/").split()
        return listed[which % len(listed)]

    def edit(self, path: str, pattern: str, new: str) -> None:
        text = self.governed.read(path)
        self.governed.write(path, re.sub(pattern, new, text, count=1))
