"""What a person is shown besides the files: the version approved before, the specification, what was submitted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from git.scratch import commit, git, make_repository
from judging.repositories import Written
from ledger.stories import COMMIT, A, B, C, Story
from workpacket.approvals.envelope import RepositoryName, Statement, Subject
from workpacket.documents.packet import SpecAnchor
from workpacket.documents.spec_pointer import passages
from workpacket.git.repository import Repository
from workpacket.lifecycle.gates import AMENDMENT_GATE, VERDICT_GATE
from workpacket.model.canonical import Json
from workpacket.problem import Problem
from workpacket.shell.approvals import shown
from workpacket.shell.approvals.shown import (
    contract_before,
    last_approved,
    what_is_required,
    what_was_submitted,
)
from workpacket.shell.approvals.subject import ApprovalSubject
from workpacket.text.source import Source

pytestmark = pytest.mark.share(4)

PACKET, GATE, PATH = "WP-1-Kettle-v1", "activation", "the refinement.md"
LOST = "f" * 40


def approved(
    day: int = 1, data: bytes = b"", path: str = PATH, contract: str | None = None, decision: str = "approve"
) -> Statement:
    """What ann has signed on this day in May."""
    return Statement(
        subjects=(Subject("another.md", "0" * 64), Subject(path, sha256(data).hexdigest())),
        packet=PACKET,
        gate=GATE,
        decision=decision,
        role="approver",
        approver=f"ann-{day}",
        repository=RepositoryName("a/b", COMMIT),
        base=COMMIT,
        spec=None,
        policy="a" * 64,
        log_heads=(),
        scope=(),
        issued_at=datetime(2026, 5, day, tzinfo=UTC),
        expires_at=datetime(2026, 6, day, tzinfo=UTC),
        nonce="0" * 32,
        contract=contract,
    )


def judged(statement: Statement | None, *codes: str) -> Any:
    opened = SimpleNamespace(statement=statement) if statement is not None else None
    return SimpleNamespace(opened=opened, refusals=tuple(Problem(code, "") for code in codes))


def seen(
    repository: Repository | None = None,
    envelopes: Iterable[Any] = (),
    story: Story | None = None,
    base: str = "",
    files: dict[str, bytes] | None = None,
) -> Any:
    """As much of what is known about approvals as is asked here."""

    def verdict(packet: str, gate: str) -> Any:
        return SimpleNamespace(judged=tuple(envelopes) if (packet, gate) == (PACKET, GATE) else ())

    return SimpleNamespace(
        repository=repository,
        verdict=verdict,
        log=lambda packet: (story or Story(packet)).log(),
        base=SimpleNamespace(commit=base, name="main"),
        tree=files or {},
    )


# --- what was approved before ---


def who_approved(tmp_path: Path, *envelopes: Any, path: str = PATH) -> str:
    found = last_approved(seen(make_repository(tmp_path), envelopes), PACKET, GATE, path)
    return found.approver if found is not None else "no one"


def test_the_latest_approval_of_the_file_is_the_one_to_compare_with(tmp_path: Path) -> None:
    latest_first = [judged(approved(3, path="x.md")), judged(approved(2)), judged(approved(1))]
    assert who_approved(tmp_path, *latest_first) == "ann-2"
    assert who_approved(tmp_path, *reversed(latest_first)) == "ann-2"
    assert who_approved(tmp_path, *latest_first, path="x.md") == "ann-3"
    assert who_approved(tmp_path, *latest_first, path="y.md") == "no one"


def test_only_what_someone_approved_is_compared_with(tmp_path: Path) -> None:
    envelopes = [judged(approved(1)), judged(approved(2, decision="reject")), judged(None)]
    assert who_approved(tmp_path, *envelopes) == "ann-1"
    assert who_approved(tmp_path, *envelopes[1:]) == "no one"


MOVED_ON = (
    "approval_expired", "approval_too_old", "approved_spec_moved", "base_unknown", "contract_mismatch",
    "contract_unreadable", "key_out_of_time", "log_head_unknown", "log_moved", "nonce_used", "policy_moved",
    "scope_moved", "statement_outdated", "subject_mismatch",
)  # fmt: skip


@pytest.mark.parametrize("code", MOVED_ON)
def test_an_approval_that_was_good_when_given_says_what_was_approved(tmp_path: Path, code: str) -> None:
    assert who_approved(tmp_path, judged(approved(), code)) == "ann-1"


def test_one_that_has_every_such_fault_says_so_too(tmp_path: Path) -> None:
    assert who_approved(tmp_path, judged(approved(), *MOVED_ON)) == "ann-1"


@pytest.mark.parametrize("code", ["signature_wrong", "key_revoked", "role_missing"])
def test_an_envelope_that_never_counted_does_not(tmp_path: Path, code: str) -> None:
    assert who_approved(tmp_path, judged(approved(2), "log_moved", code), judged(approved(1))) == "ann-1"


def version(repository: Repository, data: bytes, path: str = PATH) -> bytes | None:
    found = last_approved(seen(repository, [judged(approved(1, data, path))]), PACKET, GATE, path)
    assert found is not None
    assert found.at == datetime(2026, 5, 1, tzinfo=UTC)
    return found.data


def test_the_approved_version_is_found_by_its_digest_in_any_branch(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    assert version(repository, b"one") is None, "nothing is committed yet"
    commit(tmp_path, "one", **{PATH: "one", "other.md": "else"})
    git(tmp_path, "switch", "--quiet", "--create", "beside")
    commit(tmp_path, "two", **{PATH: "two"})
    git(tmp_path, "switch", "--quiet", "main")
    commit(tmp_path, "three", **{PATH: "three"})
    assert [version(repository, data) for data in (b"one", b"two", b"three")] == [b"one", b"two", b"three"]
    assert version(repository, b"else") is None, "another file is not a version of this one"
    assert version(repository, b"four") is None
    git(tmp_path, "switch", "--quiet", "--orphan", "alone")
    assert version(repository, b"two") == b"two", "the branch that is checked out has no commits yet"


def test_a_path_of_two_lines_has_no_versions(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    path = "one\ntwo"
    commit(tmp_path, "one", **{path: "one"})
    assert version(repository, b"one", path) is None


def test_only_the_latest_five_hundred_versions_are_searched(tmp_path: Path) -> None:
    written = Written(tmp_path)
    last = ""
    for number in range(501):
        last = written.commit({PATH: str(number)}, *([last] if last else []))
    repository = written.stored()
    git(tmp_path, "update-ref", "refs/heads/main", last)
    assert [version(repository, data) for data in (b"0", b"1", b"500")] == [None, b"1", b"500"]
    written.close()


# --- the contract before ---


NEVER_COMMITTED = "0" * 64


@pytest.fixture
def contracts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every contract was committed but one."""

    def found(_: object, packet: str, digest: str) -> str | None:
        return None if digest == NEVER_COMMITTED else f"{digest} of {packet}"

    monkeypatch.setattr(shown, "contract_version", found)


def before(gate: str, envelopes: Iterable[Any] = (), story: Story | None = None) -> tuple[object, str] | None:
    found = contract_before(seen(None, envelopes, story), PACKET, gate)
    return (found.contract, found.since) if found is not None else None


@pytest.mark.usefixtures("contracts")
def test_the_contract_that_someone_approved_last_is_the_one_before() -> None:
    envelopes = [judged(approved(1, contract=A)), judged(approved(2, contract=B)), judged(approved(3))]
    assert before(GATE, envelopes) == (f"{B} of {PACKET}", "ann-2 approved it at 2026-05-02 00:00Z")
    assert before(GATE, envelopes[2:]) is None, "a statement of the first version names no contract"
    assert before(GATE, [judged(approved(1, contract=NEVER_COMMITTED))]) == (
        None,
        "ann-1 approved it at 2026-05-01 00:00Z",
    )
    assert before(GATE) is None


def active(*contracts: str) -> Story:
    """A packet with these contracts in force, each of which replaces the same one on a branch of its own."""
    story = Story(PACKET)
    story.add("created")
    first = story.add("activated", contract=A)
    for contract in contracts:
        story.add("amended", after=(first,), previous=A, contract=contract)
    return story


@pytest.mark.usefixtures("contracts")
def test_an_amendment_replaces_the_contract_in_force() -> None:
    envelopes = [judged(approved(2, contract=C))]
    assert before(AMENDMENT_GATE, envelopes, active()) == (f"{A} of {PACKET}", "the current contract")
    assert before(AMENDMENT_GATE, envelopes, active(B)) == (f"{B} of {PACKET}", "the current contract")
    assert before(GATE, envelopes, active()) == (f"{C} of {PACKET}", "ann-2 approved it at 2026-05-02 00:00Z")


@pytest.mark.usefixtures("contracts")
def test_of_two_contracts_in_force_neither_is_the_one_before() -> None:
    assert before(AMENDMENT_GATE, (), active(B, C)) is None
    assert before(AMENDMENT_GATE, (), None) is None


# --- what the specification requires ---

SPECIFICATION = "# Tea\n\n## Water\n\nIt boils.\n\n## Leaves\n\nThey are dry.\nThey are green.\n"
SPEC_PATH = "SPEC_v1.md"


def required(anchor: SpecAnchor | None, data: bytes | None, *, light: bool = True) -> list[str]:
    pinned = f"{anchor.line()}\n" if anchor is not None else ""
    page = f"# Brew tea\n\n## SCOPE\n- FORM: light\n\n## DONE_MEANS\n- Hot\n\n## REFINEMENT\nIt is hot.\n{pinned}"
    matter = ApprovalSubject(((f".GOV/task_packets/{PACKET}.md", page.encode()),), light=light)
    read = SimpleNamespace(read=lambda path: SimpleNamespace(data=data) if data and path == SPEC_PATH else None,
                           as_stored=lambda _, data: data)  # fmt: skip
    approvals = seen()
    approvals.tree = read
    return list(what_is_required(approvals, matter))


def leaves() -> SpecAnchor:
    found = passages(Source.from_bytes(SPEC_PATH, SPECIFICATION.encode()))
    (section,) = (one for one in found if one.title == "Leaves")
    return SpecAnchor("Leaves", SPEC_PATH, section.digest)


def test_the_section_that_a_light_packet_pins_is_shown_line_by_line() -> None:
    said = ["## Leaves", "", "They are dry.", "They are green."]
    assert required(leaves(), SPECIFICATION.encode()) == said


def test_a_full_packet_quotes_its_lines_itself() -> None:
    assert required(leaves(), SPECIFICATION.encode(), light=False) == []


def test_a_section_that_says_something_else_now_is_named() -> None:
    changed = SPECIFICATION.replace("green", "black").encode()
    assert required(leaves(), changed) == ["Leaves has changed since"]


def test_without_an_anchor_or_a_specification_nothing_is_shown() -> None:
    assert required(None, SPECIFICATION.encode()) == []
    assert required(leaves(), None) == []


# --- what was submitted ---

ROW: dict[str, Json] = {"criterion": "it boils", "result": "met"}


def submitted(
    repository: Repository | None, base: str, last: str, *rows: Json, said: str = "", gate: str = VERDICT_GATE
) -> list[str]:
    """What is shown of the last of two submissions, except for the proof that each of them names."""
    story = Story(PACKET)
    story.tell("created", "activated", "claimed", "submitted")
    named: dict[str, Any] = {"base_commit": said} if said else {}
    story.add("submitted", commit=last, at="2026-05-01T00:00:00Z", evidence=[*rows, ROW], **named)
    story.add("noted")
    told = list(what_was_submitted(seen(repository, (), story, base), PACKET, gate))
    assert told[-1:] in ([], ["met: it boils"])
    return told[:-1]


def heading(last: str) -> list[str]:
    return [f"commit {last}", "submitted by ann (human) at 2026-05-01T00:00:00Z, according to the event"]


def test_only_the_judge_of_the_work_is_shown_what_was_submitted() -> None:
    assert submitted(None, "", LOST, gate=GATE) == []


def test_a_packet_without_a_submission_says_so() -> None:
    assert list(what_was_submitted(seen(), PACKET, VERDICT_GATE)) == ["nothing was submitted"]


class Work:
    """Two commits of work, on a branch that left main at `start`; main has moved on meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.repository = folder, make_repository(folder)
        self.root = commit(folder, "root", a="1\n")
        self.start = commit(folder, "start", a="1\n2\n")
        git(folder, "switch", "--quiet", "--create", "work")
        self.middle = commit(folder, "middle", b="1\n")
        self.last = commit(folder, "last", a="2\n", **{"a folder__c": "1\n2\n"})
        git(folder, "switch", "--quiet", "main")
        self.main = commit(folder, "meanwhile", d="1\n")

    def git(self, *words: str) -> str:
        git(self.folder, *words)
        return git(self.folder, "rev-parse", "HEAD")


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


CHANGED = ["+0 -1 a", "+2 -0 a folder/c", "+1 -0 b"]


def test_changes_are_counted_by_git_from_where_the_work_left_the_base(work: Work) -> None:
    told = submitted(work.repository, work.main, work.last)
    assert told == [*heading(work.last), f"changes since the work diverged from main at {work.start}", *CHANGED]


def test_an_event_that_names_a_commit_before_that_changes_nothing(work: Work) -> None:
    for said in (work.root, work.start):
        told = submitted(work.repository, work.main, work.last, said=said)
        assert told[2:] == [f"changes since the work diverged from main at {work.start}", *CHANGED]


def test_an_event_that_names_a_later_commit_hides_nothing(work: Work) -> None:
    for said in (work.middle, work.main, LOST):
        told = submitted(work.repository, work.main, work.last, said=said)
        note = f"changes since the work diverged from main at {work.start}; the event names {said} instead"
        assert told[2:] == [note, *CHANGED]


def test_work_that_was_merged_left_the_base_before_its_landing(work: Work) -> None:
    landed = work.git("merge", "--quiet", "--no-ff", "--message", "landed", "work")
    later = commit(work.folder, "later", e="1\n")
    for base in (landed, later):
        told = submitted(work.repository, base, work.last)
        assert told[2:] == [f"changes since the work diverged from main at {work.start}", *CHANGED]


def unknown_start(first: str) -> str:
    return f"changes since {first}, according to the event: git cannot determine where the work diverged from main"


def test_where_git_cannot_tell_the_event_is_quoted(work: Work) -> None:
    forward = work.git("reset", "--quiet", "--hard", "work")
    after = commit(work.folder, "after", e="1\n")
    for base in ("", forward, after):
        told = submitted(work.repository, base, work.last, said=work.start)
        assert told[2:] == [unknown_start(work.start), *CHANGED], "it was not merged, but the branch moved forward"
        told = submitted(work.repository, base, work.last)
        assert told[2:] == [unknown_start(f"{work.last}^"), *CHANGED[:2]]


def test_work_with_a_root_of_its_own_left_the_base_nowhere(work: Work) -> None:
    git(work.folder, "checkout", "--quiet", "--orphan", "alone")
    alone = commit(work.folder, "alone", a="1\n")
    told = submitted(work.repository, work.main, alone, said=work.root)
    assert told[2:] == [unknown_start(work.root), "+1 -0 d"]


def test_a_commit_that_is_missing_here_has_unknown_changes(work: Work) -> None:
    missing = "the changes are unknown: a commit that the event names is missing here"
    told = submitted(work.repository, work.main, LOST, said=work.start)
    assert told == [*heading(LOST), unknown_start(work.start), missing]
    assert submitted(work.repository, "", work.last, said=LOST)[-1] == missing


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (ROW, "met: it boils"),
        (
            {
                **ROW,
                "command": "boil",
                "exit_code": 0,
                "commit": COMMIT,
                "reason": "hot",
                "proof": ["a.py:1", "b.py:2"],
            },
            f"met: it boils (command: boil; ended with: 0; at: {COMMIT}; because: hot; places: a.py:1, b.py:2)",
        ),
    ],
)
def test_each_claimed_proof_is_told_in_one_line(work: Work, row: Json, line: str) -> None:
    told = submitted(work.repository, work.main, work.last, row, row)
    assert told[-3:] == [CHANGED[-1], line, line]
