"""`workpacket log`: verify the log, and sign checkpoints of it.

`workpacket log recover`: complete or undo an interrupted change of several files, and restore events that git
removed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from workpacket import __version__
from workpacket.cli.options import Arguments, Command, Option, chosen, usage
from workpacket.cli.packet_command import ACTING, actor_of
from workpacket.cli.read_only import open_for_reading, show_json
from workpacket.git.repository import Repository
from workpacket.ledger.verify import Reach, checkpointed_heads, signature_path
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.governed_files import packet_called, require_packets
from workpacket.shell.governing.execution import here
from workpacket.shell.held import judged_in_part
from workpacket.shell.judging.log_checkpoints import Judge, make_checkpoint
from workpacket.shell.judging.log_verification import Verified, verify_log
from workpacket.shell.judging.lost_events import bring_back, lost_events
from workpacket.shell.keys import find_key
from workpacket.shell.transactions.recovery import recover, temporaries, tidy, unfinished

# Faults that a new checkpoint repairs, because it covers the previous ones.
_SETTLED_BY_IT = {
    "log_checkpoint_unsigned",
    "log_checkpoint_revoked",
    "log_checkpoint_out_of_time",
    "log_checkpoint_signer",
}


def checkpoint(arguments: Arguments) -> int:
    if arguments.words[1:]:
        raise usage(arguments.command, "unexpected_argument", "a checkpoint always covers the whole log")
    from workpacket.shell.actor import moment

    repository, now = open_for_reading(), moment()
    base = arguments.value("base")
    verified = verify_log(repository, base, now.now)
    findings = [one for one in verified.findings if one.code not in _SETTLED_BY_IT]
    status = exit_of(findings)
    if status != exits.OK:
        if arguments.flag("json"):
            sys.stdout.write(render_envelope("log", status, findings, {"checkpoints": []}))
            return status
        say(findings)
        print("no checkpoint can be created while the log has errors")
        print(f"next: workpacket explain {findings[0].code}")
        return status
    key, actor = find_key(arguments.value("key")), actor_of(arguments, repository)
    judge = Judge(repository, base, verified.own, now.now)
    made = make_checkpoint(repository, verified, judge, key, actor, f"workpacket {__version__}", now)
    if arguments.flag("json"):
        rows: list[Json] = [
            {"path": event.path, "signature": signature_path(event.id), "packets": len(list(checkpointed_heads(event)))}
            for event in made
        ]
        sys.stdout.write(render_envelope("log", exits.OK, [], {"checkpoints": rows}))
        return exits.OK
    for event in made:
        print(f"{event.path}: the heads of {counted(len(list(checkpointed_heads(event))), 'packet')}, signed")
    if not made:
        print("an existing checkpoint already covers everything")
    print("next: commit it on the protected branch" if made else "next: workpacket log verify")
    return exits.OK


def run(arguments: Arguments) -> int:
    if chosen(arguments, ("verify", "checkpoint")) == "checkpoint":
        return checkpoint(arguments)
    from workpacket.shell.actor import moment

    repository = open_for_reading()
    base = arguments.value("base")
    verified = verify_log(repository, base, moment().now, signatures=arguments.flag("signatures"))
    if verified.proven:
        _keep(verified)
    signed, wanted = verified.signatures, set(arguments.words[1:])
    found = [one for one in verified.findings if not wanted or wanted & set(one.path.split("/"))]
    mentioned = {part for one in found for part in one.path.split("/")} | {row.packet for row in verified.packets}
    require_packets(str(repository.root), wanted, mentioned)
    findings = judged_in_part(str(repository.root), found)
    rows = [row for row in verified.packets if not wanted or row.packet in wanted]
    status = exit_of(findings)
    if arguments.flag("json"):
        packets: list[Json] = [row_json(row) for row in rows]
        data: dict[str, Json] = {"events": verified.events, "packets": packets}
        if signed is not None:
            data["signatures"] = {
                "proven": signed.proven,
                "unlisted": signed.unlisted,
                "unsigned": signed.unsigned,
                "invalid": signed.invalid,
            }
        sys.stdout.write(render_envelope("log", status, findings, data))
        return status
    say(findings)
    print(f"{verified.events} events, {len(findings)} findings")
    if signed is not None:
        print(
            f"signatures: {signed.proven} proven; claimed, not proven: {signed.unsigned} unsigned, "
            f"{signed.unlisted} by keys that the policy does not list or has revoked; {signed.invalid} invalid"
        )
    if verified.checkpoints:
        print("\n".join(vouched_lines(rows, in_full=bool(wanted))))
    print(f"next: {f'workpacket explain {findings[0].code}' if findings else 'workpacket status'}")
    return status


def _keep(verified: Verified) -> None:
    """Make lists show which packets were verified."""
    from workpacket.cli.workspace import open_workspace
    from workpacket.shell.kept_logs import keep_proven

    cache = open_workspace().open_cache()
    try:
        keep_proven(cache, verified.policy, verified.proven)
    finally:
        cache.close()


def say(findings: Iterable[Problem]) -> None:
    for one in findings:
        print(f"{escape(one.path)}: {one.severity}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")


def vouched_lines(rows: Sequence[Reach], *, in_full: bool) -> list[str]:
    """Return how much of the log is covered by checkpoints, and who signed them; if packets are given, return this for
    each packet.
    """
    if in_full:
        return [
            f"{escape(row.packet)}: {row.vouched} of {row.events} events vouched for"
            + (f" by {escape(row.by)} (checkpoint {row.checkpoint[:12]})" if row.by else "")
            for row in rows
        ]
    whose = ", ".join(dict.fromkeys(row.by for row in rows if row.by))
    counted = f"{sum(row.vouched for row in rows)} of {sum(row.events for row in rows)}"
    return [f"{counted} packet events vouched for" + (f" by {escape(whose)}" if whose else "")]


def row_json(row: Reach) -> Json:
    return {
        "packet": row.packet,
        "events": row.events,
        "vouched": row.vouched,
        "checkpoint": row.checkpoint,
        "vouched_by": row.by,
    }


def exit_of(findings: Sequence[Problem]) -> int:
    """Return the exit status of the most severe error. Forks count as neither damage nor errors."""
    errors = [catalogue()[one.code].exit_code for one in findings if one.severity == "error"]
    return max(errors, default=exits.OK)


_LOG = Command(
    "log",
    run,
    arguments="verify [WP_ID...] | checkpoint",
    description="""
`verify` finds events that were edited, renamed, removed or forged within a log, and events missing at its end although
a signed checkpoint names them; it shows how much of the log such checkpoints cover. With --base, it also finds events
of the base that are missing or were replaced: nothing on the base may be changed or removed.

`checkpoint` records the heads of all logs at HEAD, and signs them. It is intended for CI on the protected branch: the
key must be in allowed_signers for workpacket-checkpoint@v1, and its owner must have the role `ci`.""",
    options=(
        Option("base", "compare with this revision and use its policy", value="REV"),
        Option("signatures", "verify: also verify every event's signature, using the keys in the policy on the base"),
        Option("key", "the key to sign a checkpoint with; a .pub file if the key is in an SSH agent", value="PATH"),
        *ACTING,
    ),
    examples=(
        "workpacket log verify",
        "workpacket log verify --base origin/main",
        "workpacket log verify --signatures",
        "workpacket log checkpoint --key /run/secrets/ci_key --as ci",
    ),
)


def _recover(arguments: Arguments) -> int:
    repository = here()
    if arguments.flag("forward") and arguments.flag("back"):
        raise usage(arguments.command, "conflicting_options", "give either --forward or --back")
    left = unfinished(repository)
    if arguments.flag("write") or not (left or arguments.flag("forward") or arguments.flag("back")):
        return _recover_events(arguments, repository)
    if not (arguments.flag("forward") or arguments.flag("back")):
        return _show_unfinished(arguments, [(one.command, one.tx, one.paths, one.third_state) for one in left])
    done = recover(repository, "new" if arguments.flag("forward") else "old")
    rows: list[Json] = [{"command": one.command, "tx": one.tx, "set_aside": list(one.set_aside)} for one in done]
    if arguments.flag("json"):
        return show_json(arguments, {"recovered": rows})
    for one in done:
        print(f"{escape(one.command)} ({one.tx}) was " + ("finished" if one.way == "new" else "undone"))
        for path in one.set_aside:
            print(f"  saved in the git directory: {escape(path)}")
    print(f"{len(done)} interrupted commands")
    print("next: workpacket check")
    return exits.OK


def _recover_events(arguments: Arguments, repository: Repository) -> int:
    """Show the events that git removed; with --write, restore them."""
    lost = lost_events(repository, arguments.words)
    for name in {*arguments.words} - {each.path.split("/")[2] for each in lost}:
        packet_called(str(repository.root), name)  # an unknown id is an error
    left = temporaries(repository)
    write = arguments.flag("write") and bool(lost)
    finished = tidy(repository) if arguments.flag("write") else ()
    if write:
        from workpacket.shell.actor import moment

        bring_back(repository, lost, moment())
    if arguments.flag("json"):
        rows: list[Json] = [{"path": each.path, "where": each.where, "reason": each.why} for each in lost]
        return show_json(arguments, {"unfinished": [], "lost": rows, "written": write})
    for ended in finished:
        print(f"{escape(ended.command)} ({ended.tx}) was {'finished' if ended.way == 'new' else 'undone'}")
    done = "; removed" if arguments.flag("write") else ""
    for one in left:
        print(f"{escape(one.path)}: left by {escape(one.command)}, which changed nothing{done}")
    for each in lost:
        print(f"{escape(each.path)}: {escape(each.where)}; {each.why}")
    if left and not lost and not done:
        print("next: workpacket log recover --write")
        return exits.OK
    if not lost and (finished or left):
        print("next: workpacket check")
        return exits.OK
    if not lost:
        print("nothing is unfinished, and no events in git are missing here")
        print("next: workpacket status")
        return exits.OK
    print(f"{counted(len(lost), 'file')} {'brought back' if write else 'missing here, but still in git'}")
    again = " ".join(("workpacket log recover", *arguments.words, "--write"))
    print(f"next: {'workpacket board sync, then: workpacket check' if write else again}")
    return exits.OK


def _show_unfinished(arguments: Arguments, left: list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]) -> int:
    if arguments.flag("json"):
        rows: list[Json] = [
            {"command": command, "tx": tx, "paths": list(paths), "changed_since": list(third)}
            for command, tx, paths, third in left
        ]
        return show_json(arguments, {"unfinished": rows})
    for command, tx, paths, third in left:
        print(f"{escape(command)} ({tx}) stopped between: {escape(', '.join(paths))}")
        for path in third:
            print(f"  changed since: {escape(path)}")
    if not left:
        print("nothing is unfinished")
    print(
        "next: workpacket log recover --forward, or workpacket log recover --back"
        if left
        else "next: workpacket status"
    )
    return exits.OK


_RECOVER = Command(
    "recover",
    _recover,
    arguments="[WP_ID...]",
    description="""
Without an option, shows what an interrupted command left unfinished; if nothing, the events and envelopes that are
missing or damaged here and that git still has: in HEAD's history after a revert or a bad merge, or in no branch after a
reset, a rebase or a deleted branch, where the reflog, the stash or dangling commits have them. --write brings them back
as they were.

Files that were changed after an interruption are saved before --forward or --back overwrites them.""",
    options=(
        Option("forward", "finish an interrupted command"),
        Option("back", "undo an interrupted command"),
        Option("write", "restore missing events"),
    ),
    examples=("workpacket log recover", "workpacket log recover --write", "workpacket log recover --forward"),
)

DECLARED = {command.name: command for command in (_LOG, _RECOVER)}
