"""`workpacket log checkpoint`: what the protected branch holds, signed by CI."""

from __future__ import annotations

import sys

from workpacket import __version__
from workpacket.cli.governing import actor_of
from workpacket.cli.log import exit_of, say
from workpacket.cli.looking import looking
from workpacket.cli.options import Arguments, usage
from workpacket.ledger.checkpoints import checkpointed_heads, signature_path
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.json_report import render_envelope
from workpacket.shell.judging.log_checkpoints import Judge, make_checkpoint
from workpacket.shell.judging.log_verifying import verify_log
from workpacket.shell.keys.own_key import find_key

# What a new checkpoint sets right: it vouches for the ones before it.
_SETTLED_BY_IT = {
    "log_checkpoint_unsigned",
    "log_checkpoint_revoked",
    "log_checkpoint_out_of_time",
    "log_checkpoint_signer",
}


def checkpoint(arguments: Arguments) -> int:
    if arguments.words[1:]:
        raise usage(arguments.command, "unexpected_argument", "a checkpoint is of the whole log")
    from workpacket.shell.moment import moment

    repository, now = looking(), moment()
    base = arguments.value("base")
    verified = verify_log(repository, base, now.now)
    findings = [one for one in verified.findings if one.code not in _SETTLED_BY_IT]
    status = exit_of(findings)
    if status != exits.OK:
        if arguments.flag("json"):
            sys.stdout.write(render_envelope("log", status, findings, {"checkpoints": []}))
            return status
        say(findings)
        print("nothing is vouched for as long as the log has faults")
        print(f"next: workpacket explain {findings[0].code}")
        return status
    key, actor = find_key(arguments.value("key")), actor_of(arguments, repository)
    judge = Judge(repository, base, verified.files, now.now)
    made = make_checkpoint(repository, verified.logs, judge, key, actor, f"workpacket {__version__}", now)
    if arguments.flag("json"):
        rows: list[Json] = [
            {"path": event.path, "signature": signature_path(event.id), "packets": len(list(checkpointed_heads(event)))}
            for event in made
        ]
        sys.stdout.write(render_envelope("log", exits.OK, [], {"checkpoints": rows}))
        return exits.OK
    for event in made:
        print(f"{event.path}: the heads of {len(list(checkpointed_heads(event)))} packets, signed")
    if not made:
        print("everything is vouched for already")
    print("next: git commit it on the protected branch" if made else "next: workpacket log verify")
    return exits.OK
