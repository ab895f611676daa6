"""The part of `runs` about the links to packets: settle what log and store say differently, give up what is lost."""

from __future__ import annotations

from pathlib import Path

from workpacket.bridges.run_links import Disagreement, RunLinks, disagreements, settle
from workpacket.cli.governing import actor_of, required
from workpacket.cli.options import Arguments, usage
from workpacket.cli.store_door import answer, open_runtime, refuse
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository, find_repository
from workpacket.ledger.state import Run
from workpacket.model.canonical import Json
from workpacket.plans.linking import Ending
from workpacket.report.catalogue import catalogue
from workpacket.report.door import escape
from workpacket.runtime.errors import RuntimeFault
from workpacket.runtime.runtime import Runtime
from workpacket.shell.governing.run_links import close, state_here

# What a person types about a disagreement that nobody can settle but them.
_CHOICES = {
    "elsewhere": "workpacket runs unlink {} --reason TEXT",
    "unlinked": "workpacket cancel {}",
    "not_begun": "workpacket runs settle",
    "late": "workpacket runs settle",
}


def carry_out(arguments: Arguments, action: str) -> int:
    repository = find_repository(Path.cwd())
    try:
        with open_runtime() as runtime:
            if action == "settle":
                return _settle(arguments, repository, runtime)
            return _unlink(arguments, repository, runtime)
    except RuntimeFault as fault:
        return refuse(arguments, fault)


def choice_about(one: Disagreement) -> str:
    return _CHOICES[one.what].format(one.run)


def _settle(arguments: Arguments, repository: Repository, runtime: Runtime) -> int:
    if arguments.words:
        raise usage(arguments.command, "unexpected_argument", "`runs settle` looks at all runs of packets")
    failed: list[WorkpacketError] = []
    settled, left = settle(repository, runtime, RunLinks(repository, failed.append))
    text = "".join(f"settled: {escape(one.message)}\n" for one in settled)
    text += "".join(f"left: {escape(one.message)}\n  -> {escape(choice_about(one))}\n" for one in left)
    text += "".join(f"failed: {escape(one.message)} ({one.code})\n" for one in failed)
    status = catalogue()["run_links_disagree"].exit_code if left else 0
    status = catalogue()[failed[0].code].exit_code if failed else status
    data: dict[str, Json] = {"settled": [_as_json(one) for one in settled], "left": [_as_json(one) for one in left]}
    then = choice_about(left[0]) if left else ""
    return answer(arguments, text or "log and store agree on every run\n", data, status=status, then=then)


def _as_json(one: Disagreement) -> Json:
    return {"run": one.run, "packet": one.packet, "what": one.what, "message": one.message,
            "command": choice_about(one)}  # fmt: skip


def _unlink(arguments: Arguments, repository: Repository, runtime: Runtime) -> int:
    """A person says that a run will never end by itself, because its store is gone. The log keeps who and why."""
    if len(arguments.words) != 1 or "/" not in arguments.words[0]:
        raise usage(arguments.command, "missing_argument", "name one run of a packet, as in WP-1-Parser-v1/nightly@1")
    run, reason = arguments.words[0], required(arguments, "reason")
    packet = run.rpartition("/")[0]
    actor = actor_of(arguments, repository)
    if actor.kind != "human":
        message = f"{actor.id} is of kind {actor.kind}; that a run is lost is for a person to say"
        raise WorkpacketError("person_needed", message, hint=f"a person types: workpacket runs unlink {run}")
    found = [one for one in state_here(repository, packet).open_runs if one.run == run]
    if not found:
        raise WorkpacketError("checkpoint_missing", f"the log of {packet} has no open link of {run}",
                              hint=f"workpacket show {packet}")  # fmt: skip
    for one in disagreements(repository, runtime):
        if one.run == run and one.what in {"late", "not_begun"}:
            raise WorkpacketError("run_not_lost", one.message, hint="workpacket runs settle")

    identity = runtime.store.identity
    lost = [one for one in found if one.store != identity]
    if not lost:
        raise WorkpacketError("run_not_lost", f"the store here has {run}: it can be resumed or cancelled",
                              hint=f"workpacket cancel {run}")  # fmt: skip

    def is_it(other: Run) -> bool:
        return other.run == run and other.store != identity

    closed = close(repository, actor, packet, is_it, lambda: Ending("lost", reason=reason))
    data: dict[str, Json] = {"run": run, "packet": packet, "outcome": "lost", "links": len(closed)}
    return answer(arguments, f"{escape(run)} is lost: no verdict on {packet} waits for it\n", data,
                  then=f"workpacket why {packet}")  # fmt: skip
