"""`workpacket key`: create approval keys, and test whether a program could use them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from workpacket.approvals.actors import ACTOR_NAME
from workpacket.approvals.fields import PRINCIPAL, write_instant
from workpacket.approvals.policy import Trusted
from workpacket.cli.approve import BASE_OPTION, BROWSER_OPTION
from workpacket.cli.options import Arguments, Command, Option, chosen, usage
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository, find_repository
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.problem import Problem
from workpacket.report.catalogue import catalogue
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import trusted_or_error
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.event_keys import keys_folder, make_event_key
from workpacket.shell.keys import default_path, examine, make_key, private_keys, signers_line, touch_key_path

_BARE = lazy_pattern(r"[A-Za-z0-9_-]+")


def init(arguments: Arguments) -> int:
    """Create a key, and print the line that a change of the policy must add for it."""
    if len(arguments.words) > 2:
        raise usage(arguments.command, "unexpected_argument", "give at most one file")
    if arguments.flag("event") or arguments.value("agent"):
        return _init_event(arguments)
    if not (sys.stdin.isatty() or arguments.flag("browser")):
        raise WorkpacketError(
            "approval_needs_terminal", "ssh-keygen has to ask for a passphrase, but there is no terminal"
        )
    principal = arguments.value("principal") or _of_git("user.email")
    if not PRINCIPAL.fullmatch(principal):
        raise usage(
            arguments.command, "invalid_value", f"{principal!r} is not a literal principal; use --principal NAME"
        )
    path = Path(arguments.words[1]).absolute() if len(arguments.words) == 2 else None
    if arguments.flag("browser"):
        return _init_in_page(arguments, principal, path or touch_key_path())
    path = path or default_path()
    key = make_key(path, principal)
    line = signers_line(principal, key.public)
    place = f" --key {escape(str(path))}" if path != default_path() else ""
    data: dict[str, Json] = {"path": str(path), "fingerprint": key.public.fingerprint, "line": line}
    text = (
        f"created {escape(str(path))} ({key.public.fingerprint})\n{line}\nnext: workpacket policy trust{place}, which "
        "adds this line to .GOV/policy/allowed_signers\n"
    )
    return _tell(arguments, data, text)


def _init_in_page(arguments: Arguments, principal: str, path: Path) -> int:
    """Register a key on a security key or passkey, and print the line that a change of the policy must add for it."""
    from workpacket.cli.touch import register

    path = path if path.suffix == ".pub" else path.with_name(f"{path.name}.pub")
    key = register(principal, path, _trusted(arguments)).public
    line = signers_line(principal, key)
    data: dict[str, Json] = {"path": str(path), "fingerprint": key.fingerprint, "line": line}
    text = (
        f"registered {key.fingerprint}; its public half is {escape(str(path))}\n{line}\n"
        f"next: workpacket policy trust --key {escape(str(path))}, which adds this line and the page to .GOV/policy\n"
    )
    return _tell(arguments, data, text)


def _init_event(arguments: Arguments) -> int:
    """Create an event key, and print what a change of the policy must add for it."""
    agent = arguments.value("agent")
    if agent and (arguments.flag("event") or arguments.value("as")):
        raise usage(
            arguments.command, "invalid_value", "--event (for a person) and --agent NAME cannot be used together"
        )
    name = agent or arguments.value("as") or os.environ.get("WORKPACKET_ACTOR", "") or _of_git("user.name")
    if not ACTOR_NAME.fullmatch(name):
        raise usage(arguments.command, "invalid_value", f"invalid name {name!r}: expected one line; pass --as NAME")
    path = Path(arguments.words[1]).absolute() if len(arguments.words) == 2 else None
    key = make_event_key(name, "agent" if agent else "event", path)
    lines = _actor_lines(name, key.public.fingerprint, agent=bool(agent))
    data: dict[str, Json] = {"path": key.path, "fingerprint": key.public.fingerprint, "actor": name, "lines": lines}
    text = (
        f"created {escape(key.path)} ({key.public.fingerprint}), without a passphrase: it signs events and opens no "
        "gate\n"
        + "".join(f"{escape(str(line))}\n" for line in lines)
        + "next: workpacket policy trust, which adds these lines to .GOV/policy/policy.toml\n"
    )
    return _tell(arguments, data, text)


def _actor_lines(name: str, fingerprint: str, *, agent: bool) -> list[Json]:
    """Return the lines of the actor's table in policy.toml."""
    quoted = name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    kind = ['kind = "agent"', 'operator = "NAME OF A PERSON"'] if agent else ['kind = "person"']
    return [f"[actors.{quoted}]", *kind, f'keys = ["{fingerprint}"]']


def doctor(arguments: Arguments) -> int:
    """Exit with 1 if a program running under this account could approve."""
    approving = _approving(arguments)
    folder = Path.home() / ".ssh"
    files = dict.fromkeys([*private_keys(str(folder)), *([str(default_path())] if default_path().exists() else [])])
    if approving is not None:  # otherwise every event key would be reported as able to approve
        files |= dict.fromkeys(private_keys(str(keys_folder())))
    diagnosis = examine(files, approving)
    exposed = [trial.path or "the ssh-agent" for trial in diagnosis.exposed]
    findings = [
        Problem("agent_could_approve", f"{trial.key.fingerprint} in {where} signed without asking for anything")
        for trial, where in zip(diagnosis.exposed, exposed, strict=True)
    ]
    status = catalogue()["agent_could_approve"].exit_code if findings else exits.OK
    trials: list[Json] = [
        {"fingerprint": trial.key.fingerprint, "place": trial.place, "path": trial.path, "signed": trial.signed}
        for trial in diagnosis.trials
    ]
    remedies: list[Json] = list(diagnosis.remedies)
    if arguments.flag("json"):
        data: dict[str, Json] = {"exposed": bool(findings), "trials": trials, "remedies": remedies}
        sys.stdout.write(render_envelope("key", status, findings, data))
        return status
    lines = [diagnosis.sentence, *(f"  {escape(each.message)}" for each in findings)]
    lines += [f"  {number}. {remedy}" for number, remedy in enumerate(diagnosis.remedies, 1)]
    if approving is None:
        lines.append("note: the base has no allowed_signers yet, so every key found counts as an approval key")
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.write(
        f"next: {'do the first step above' if findings else 'nothing to do; run this again when your keys change'}\n"
    )
    return status


def list_keys(arguments: Arguments) -> int:
    """List whom the policy of the base trusts, and what for."""
    with open_approvals(_repository(), arguments.value("base") or None, moment()) as approvals:
        trusted = trusted_or_error(approvals)
    rows = [
        _row(trusted, blob) for blob in sorted(trusted.signers.by_key, key=lambda b: trusted.signers.by_key[b].line)
    ]
    text = "".join(
        f"{escape(str(row['principal']))}  {row['fingerprint']}  {row['kind']}  {escape(str(row['state']))}\n"
        for row in rows
    )
    signers: list[Json] = [dict(row) for row in rows]
    return _tell(arguments, {"signers": signers}, text + "next: workpacket policy show\n")


def _row(trusted: Trusted, blob: bytes) -> dict[str, Json]:
    signer = trusted.signers.by_key[blob]
    roles: list[Json] = [name for name in sorted(trusted.policy.roles) if trusted.policy.holds(signer.principal, name)]
    state = "revoked" if blob in trusted.revoked else "not for approvals" if not signer.may_approve else "roles: "
    return {
        "principal": signer.principal,
        "fingerprint": signer.key.fingerprint,
        "kind": signer.key.kind,
        "roles": roles,
        "valid_after": write_instant(signer.valid_after) if signer.valid_after else None,
        "valid_before": write_instant(signer.valid_before) if signer.valid_before else None,
        "revoked": blob in trusted.revoked,
        "state": state + (", ".join(map(str, roles)) or "none" if state == "roles: " else ""),
    }


def _approving(arguments: Arguments) -> frozenset[bytes] | None:
    """Return the keys that may approve under the policy of the base; None without a repository or with an unreadable
    policy.
    """
    trusted = _trusted(arguments)
    if trusted is None:
        return None
    return frozenset(blob for blob, each in trusted.signers.by_key.items() if each.may_approve) - trusted.revoked


def _trusted(arguments: Arguments) -> Trusted | None:
    try:
        with open_approvals(_repository(), arguments.value("base") or None, moment()) as approvals:
            trusted = approvals.trusted
    except WorkpacketError as error:
        if error.code != "no_repository":
            raise
        return None
    return trusted if isinstance(trusted, Trusted) else None


def _repository() -> Repository:
    return find_repository(Path.cwd())


def _of_git(setting: str) -> str:
    return run_git(Path.cwd(), "config", "--get", setting, check=False).text.strip()


def _tell(arguments: Arguments, data: dict[str, Json], text: str) -> int:
    sys.stdout.write(render_envelope("key", exits.OK, [], data) if arguments.flag("json") else text)
    return exits.OK


SUBCOMMANDS = ("init", "doctor", "list")


def run(arguments: Arguments) -> int:

    return {"init": init, "doctor": doctor, "list": list_keys}[chosen(arguments, SUBCOMMANDS)](arguments)


COMMAND = Command(
    "key",
    run,
    arguments="init [PATH]|doctor|list",
    description="""
`init` makes a key for approvals only, with a passphrase, that is never added to an agent; `init --browser` registers a
security key or passkey, to be touched for `approve --browser`. `init --event` and `init --agent NAME` make a key that
signs events and opens no gate: it has no passphrase, and commands use it automatically. `doctor` tries to sign as a
rogue program would, and reports whether one could approve. `list` shows whom the policy of the base trusts.""",
    options=(
        Option("event", "init: a key without a passphrase, for signing your own events"),
        Option("agent", "init: an event key for the agent with this name", value="NAME"),
        Option(
            "as", "init --event: the owner of the key (default: WORKPACKET_ACTOR, then git's user.name)", value="NAME"
        ),
        BROWSER_OPTION,
        Option("principal", "init: the name in allowed_signers (default: git's user.email)", value="NAME"),
        BASE_OPTION,
    ),
    examples=(
        "workpacket key init",
        "workpacket key init --browser",
        "workpacket key init --event",
        "workpacket key init --agent coder-1",
        "workpacket key init ~/.ssh/approvals --principal ann@example.org",
        "workpacket key doctor",
        "workpacket key list --json",
    ),
)
