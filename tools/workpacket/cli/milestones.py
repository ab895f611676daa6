"""Milestones for `run`: one commit per milestone."""

from __future__ import annotations

import sys
from pathlib import Path

from workpacket.bridges.commit_checkpoints import CommitSelection
from workpacket.bridges.dependency_guard import DependencyGuard
from workpacket.cli.open_store import answer
from workpacket.cli.options import Arguments, usage
from workpacket.git.repository import Repository, find_repository
from workpacket.model.canonical import Json
from workpacket.report.runs import rows_of_dependencies, told_of_dependencies
from workpacket.report.terminal import escape
from workpacket.runtime.attempts.recorder import RecordDraft
from workpacket.runtime.attempts.session import Session
from workpacket.runtime.commit_checkpoint import CommitCheckpoints, VerificationNote, next_milestone
from workpacket.runtime.errors import RunBlocked
from workpacket.runtime.records.state import Milestones


def reach(arguments: Arguments, session: Session, cursor: Json) -> int:
    """Commit the work as a milestone, or return the commit that already reached it."""
    if arguments.flag("token"):
        raise usage(arguments.command, "conflicting_options", "--token and --commit cannot be used together")
    repository = find_repository(Path.cwd())
    checkpoints = CommitCheckpoints(session, repository, DependencyGuard(session, repository))
    index = _number(arguments, session, repository)
    verified = VerificationNote(arguments.value("tier"), tuple(arguments.all_of("verification")))
    before = session.recorder.state.version
    point = checkpoints.reach(index, arguments.value("name"), cursor, verified)
    left = checkpoints.own_changes() if point.how == "recorded" else []
    changed = [event for event in session.recorder.store.read(session.recorder.stream, before)
               if event.type == "lockfile_changed"]  # fmt: skip
    told = [line for event in changed for line in told_of_dependencies(event.values())]
    if left:
        told.append(
            f"not committed, because milestone {point.milestone_index} had already been reached: {', '.join(left)}"
        )
    for line in told:
        sys.stderr.write(f"{escape(line)}\n")
    data: dict[str, Json] = {
        "commit": point.commit, "milestone_index": point.milestone_index, "checkpoint": point.checkpoint,
        "how": point.how, "sidecar_written": point.sidecar_written, "uncommitted": [*left],
        "dependencies": [row for event in changed for row in rows_of_dependencies(event.values())],
    }  # fmt: skip
    then = f"workpacket runtime run checkpoint HANDLE --commit --milestone {next_milestone(session)}" if left else ""
    return answer(arguments, f"{point.commit}\n", data, then=then)


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


def select_foreign(arguments: Arguments, run: str) -> int:
    """Print the last milestone of a run that another tool started and that this store does not contain."""
    repository = find_repository(Path.cwd())
    selected = CommitSelection(repository, run, Milestones(), legacy=arguments.flag("legacy")).select()
    if selected.conflicts:
        raise RunBlocked("; ".join(selected.conflicts), code="view_conflict", details={"run": run})
    if selected.source == "none":
        raise RunBlocked(f"run {run} does not exist", code="checkpoint_missing", hint="workpacket runtime runs list")
    data: dict[str, Json] = {"run": run, **selected.as_event(), "milestone_index": selected.milestone_index}
    return answer(arguments, f"{selected.milestone_index}\n", data)


def _number(arguments: Arguments, session: Session, repository: Repository) -> int:
    word = arguments.value("milestone")
    if not word:
        following = next_milestone(session)
        if following or "@" in session.recorder.stream:
            return following
        # The first milestone here of a run that another tool began.
        return CommitSelection(repository, session.recorder.stream, Milestones()).select().milestone_index + 1
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise usage(arguments.command, "invalid_value", f"invalid --milestone {word!r}: expected a non-negative number")
    return int(word)
