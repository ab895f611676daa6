"""The part of `policy` that writes: whose key may approve."""

from __future__ import annotations

import re
from pathlib import Path

from workpacket.approvals.policy_files import Trusted
from workpacket.approvals.statement import PRINCIPAL
from workpacket.cli.governing import conclude
from workpacket.cli.options import Arguments, usage
from workpacket.errors import WorkpacketError
from workpacket.git.run import run_git
from workpacket.lifecycle.policy import POLICY_PATH
from workpacket.plans.trusting import SIGNERS_PATH, trust
from workpacket.shell.approvals.attestations import read_file
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.governing.commanding import Carried, here
from workpacket.shell.keys.own_key import find_key, signers_line
from workpacket.shell.moment import moment
from workpacket.shell.transactions.transaction import writing
from workpacket.text.source import Source

_NO_NAME = re.compile(r"[^A-Za-z0-9._/-]+|^[^A-Za-z0-9]+")


def run(arguments: Arguments) -> int:
    repository, now = here(), moment()
    key = find_key(arguments.value("key"))
    principal = arguments.value("principal") or _email()
    if not PRINCIPAL.fullmatch(principal):
        raise usage(arguments.command, "invalid_value", f"{principal!r} is no literal principal; give --principal NAME")
    with writing(repository, "policy trust") as transaction, open_approvals(repository, None, now) as approvals:
        policy = read_file(approvals.tree, POLICY_PATH)
        if policy is None:
            raise WorkpacketError("path_not_found", f"there is no {POLICY_PATH}", hint="workpacket init writes it")
        signers = read_file(approvals.tree, SIGNERS_PATH)
        planned = trust(
            now,
            Source.from_bytes(POLICY_PATH, policy),
            Source.from_bytes(SIGNERS_PATH, signers) if signers is not None else None,
            repository=_NO_NAME.sub("", repository.root.name)[:100] or "repository",
            principal=principal,
            line=signers_line(principal, key.public),
            first=not isinstance(approvals.trusted, Trusted),
        )
        changed = transaction.apply(planned.plan)
    return conclude(arguments, Carried(planned, changed, transaction.finished))


def _email() -> str:
    return run_git(Path.cwd(), "config", "--get", "user.email", check=False).text.strip()
