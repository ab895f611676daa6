"""Milestones of `run`: a commit per milestone."""

from __future__ import annotations

from pathlib import Path

from workpacket.bridges.commit_checkpoints import CommitSelection
from workpacket.bridges.dependency_guard import DependencyGuard
from workpacket.cli.open_store import answer
from workpacket.cli.options import Arguments, usage
from workpacket.git.repository import find_repository
from workpacket.model.canonical import Json
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.session import Session
from workpacket.runtime.commit_checkpoint import CommitCheckpoints, next_milestone
from workpacket.runtime.errors import RunBlocked


def reach(arguments: Arguments, session: Session, cursor: Json) -> int:
    """Commit the work as a milestone, or return the commit that already reached it."""
    if arguments.flag("token"):
        raise usage(arguments.command, "conflicting_options", "--token and --commit exclude each other")
    repository = find_repository(Path.cwd())
    checkpoints = CommitCheckpoints(session, repository, DependencyGuard(session, repository))
    index = _number(arguments, session)
    point = checkpoints.reach(index, arguments.value("name"), cursor)
    data: dict[str, Json] = {
        "commit": point.commit, "milestone_index": point.milestone_index, "checkpoint": point.checkpoint,
        "how": point.how, "sidecar_written": point.sidecar_written,
    }  # fmt: skip
    return answer(arguments, f"{point.commit}\n", data)


def select(arguments: Arguments, session: Session) -> int:
    """Print the number of the last milestone that is verified to be in this history."""
    repository = find_repository(Path.cwd())
    if not session.replay_only:
        CommitCheckpoints(session, repository).settle()
    run = session.recorder.stream
    known = session.state.milestones
    selected = CommitSelection(repository, run, known, legacy=arguments.flag("legacy")).select()
    if selected.conflicts:
        raise RunBlocked("; ".join(selected.conflicts), code="view_conflict", details={"run": run})
    if not session.replay_only:
        session.recorder.record(RecordDraft("resume_checkpoint_selected", selected.as_event()))
    data: dict[str, Json] = {"run": run, **selected.as_event(), "milestone_index": selected.milestone_index}
    return answer(arguments, f"{selected.milestone_index}\n", data)


def _number(arguments: Arguments, session: Session) -> int:
    word = arguments.value("milestone")
    if not word:
        return next_milestone(session)
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise usage(arguments.command, "invalid_value", f"invalid --milestone {word!r}: expected a non-negative number")
    return int(word)
