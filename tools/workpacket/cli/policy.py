"""`workpacket policy`: the current policy, the source of each setting, and whom the policy trusts; and
`workpacket key`: create the keys that the policy trusts, and test whether a program could use them.
"""

from __future__ import annotations

import json
import os
import re
import sys
from functools import partial
from pathlib import Path

from workpacket.approvals.actors import ACTOR_NAME, Actors
from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.fields import PRINCIPAL, write_instant
from workpacket.approvals.policy import NewRoot, Trusted, is_reason, read_policy_files
from workpacket.approvals.webauthn import LOCAL, USUAL_PORT
from workpacket.cli.approve import BASE_OPTION, BROWSER_OPTION
from workpacket.cli.options import Arguments, Command, Option, chosen, usage
from workpacket.cli.packet_command import COMMIT, actor_of, conclude
from workpacket.cli.read_only import open_for_reading, show_json
from workpacket.git.repository import Repository, find_repository
from workpacket.git.run import run_git
from workpacket.lazy_pattern import lazy_pattern
from workpacket.lifecycle.gates import ANCHORING, added_gates
from workpacket.lifecycle.policy import COVERAGE_KEYS, EVIDENCE_KEYS, KEYS, AddedGate, ChecklistItem, LifecyclePolicy
from workpacket.lifecycle.transitions import ADVANCED
from workpacket.lifecycle.trust import OwnActor, Trusting, plan_reanchor, plan_trust
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import AddedLane, LaneTable
from workpacket.model.layout import POLICY_PATH, REANCHORED_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.problem import Problem, WorkpacketError
from workpacket.report.catalogue import catalogue
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import trusted_or_error
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.base import BasePolicy, policy_digest, read_base_policy
from workpacket.shell.checking import examine_file, load_findings
from workpacket.shell.governing.execution import Carried, here
from workpacket.shell.keys import (
    default_path,
    examine,
    find_key,
    keys_folder,
    make_event_key,
    make_key,
    private_keys,
    signers_line,
    touch_key_path,
)
from workpacket.shell.transactions.transaction import writing
from workpacket.text.source import Source

_KEY_COMMENT = re.compile(r"workpacket (?P<kind>event|agent) key of (?P<name>.+)")
_NO_NAME = re.compile(r"[^A-Za-z0-9._/-]+|^[^A-Za-z0-9]+")


def trust(arguments: Arguments) -> int:
    repository, now = here(), moment()
    key = find_key(arguments.value("key"))
    principal = (
        arguments.value("principal") or run_git(Path.cwd(), "config", "--get", "user.email", check=False).text.strip()
    )
    if not PRINCIPAL.fullmatch(principal):
        raise usage(
            arguments.command, "invalid_value", f"{principal!r} is not a literal principal; pass --principal NAME"
        )
    person, actors = _own_actors(actor_of(arguments, repository).id)
    with writing(repository, "policy trust") as transaction, open_approvals(repository, None, now) as approvals:
        policy = read_file(approvals.tree, POLICY_PATH)
        if policy is None:
            raise WorkpacketError("path_not_found", f"there is no {POLICY_PATH}", hint="workpacket init writes it")
        signers = read_file(approvals.tree, SIGNERS_PATH)
        whom = Trusting(
            repository=_NO_NAME.sub("", repository.root.name)[:100] or "repository",
            principal=principal,
            line=signers_line(principal, key.public),
            person=person,
            actors=actors,
            first=not isinstance(approvals.trusted, Trusted),
            port=USUAL_PORT if key.public.application == LOCAL else 0,
            role=arguments.value("role"),
        )
        before = Source.from_bytes(SIGNERS_PATH, signers) if signers is not None else None
        planned = plan_trust(now, Source.from_bytes(POLICY_PATH, policy), before, whom)
        changed = transaction.apply(planned.plan)
    return conclude(arguments, Carried(planned, changed, transaction.finished))


def _own_actors(named: str) -> tuple[str, tuple[OwnActor, ...]]:
    """Return the person who uses this account, and the actors that have keys here: this person, then the agents, sorted
    by name. The person is the one who is `named`, unless exactly one person has a key here and has a different name. A
    key without the comment of an event key is ignored.
    """
    found = [actor for path in sorted(keys_folder().glob("*.pub")) if (actor := _own_actor(path))]
    people = [actor.name for actor in found if not actor.agent]
    person = people[0] if len(people) == 1 else named
    own = [actor for actor in found if actor.agent or actor.name == person]
    return person, tuple(sorted(own, key=lambda actor: (actor.agent, actor.name)))


def _own_actor(public: Path) -> OwnActor | None:
    try:
        line = public.read_text("utf-8", "replace").strip()
        fingerprint = find_key(str(public)).public.fingerprint
    except (OSError, WorkpacketError):
        return None
    said = _KEY_COMMENT.fullmatch(line.partition(" ")[2].partition(" ")[2])
    return OwnActor(said["name"], said["kind"] == "agent", fingerprint) if said is not None else None


def re_anchor(arguments: Arguments) -> int:
    """Record that the policy in the work tree is the new root of trust."""
    repository, now = here(), moment()
    reason = arguments.value("reason")
    if not is_reason(reason):
        what = "--reason requires a single line of at most 240 characters, without quotes or backslashes"
        raise usage(arguments.command, "invalid_value" if reason else "missing_argument", what)
    with writing(repository, "policy re-anchor") as transaction, open_approvals(repository, None, now) as approvals:
        if approvals.base.policy.policy is None:
            raise WorkpacketError("policy_unanchored", "the base has no policy to replace", hint=ANCHORING)
        read = partial(read_file, approvals.tree)
        files = PolicyFiles(read(POLICY_PATH), read(SIGNERS_PATH), read(REVOKED_PATH))
        trusted = read_policy_files(files)
        if isinstance(trusted, tuple):
            raise WorkpacketError.of(trusted[0])
        root = NewRoot(now.now, reason, policy_digest(approvals.base.policy), policy_digest(files))
        if root.policy == root.replaced:
            what = "the policy in the work tree is identical to the one on the base; edit the work tree's policy first"
            raise WorkpacketError("invalid_value", what, hint="workpacket policy trust")
        before = approvals.base.policy_files.get(REANCHORED_PATH)
        planned = plan_reanchor(now, before, read(REANCHORED_PATH), root)
        changed = transaction.apply(planned.plan)
    return conclude(arguments, Carried(planned, changed, transaction.finished))


def run(arguments: Arguments) -> int:
    action = chosen(arguments, ("show", "test", "trust", "re-anchor"))
    if action == "trust":
        return trust(arguments)
    if action == "re-anchor":
        return re_anchor(arguments)
    repository = open_for_reading()
    policy = read_base_policy(repository, arguments.value("base"))
    if action == "test":
        return _test(arguments, str(repository.root))
    return _show(arguments, policy)


def _show(arguments: Arguments, policy: BasePolicy) -> int:
    values: dict[str, Json] = {key: _plain(getattr(policy.lifecycle, key)) for key in KEYS}
    values["target_branch"] = policy.target_branch
    proofs = policy.lifecycle.evidence
    if arguments.flag("json"):
        origins: dict[str, Json] = {key: policy.lifecycle.origin(key) for key in KEYS}
        way: list[Json] = [*policy.lifecycle.lanes.way]
        faults: list[Json] = [{"code": one.code, "message": one.message} for one in policy.lifecycle.lane_faults]
        said: dict[str, Json] = {"read_from": policy.where, "anchored": policy.anchored}
        said |= {"way": way, "lane_faults": faults}
        evidence: dict[str, Json] = {key: _plain(getattr(proofs, key)) for key in EVIDENCE_KEYS if key != "ci"}
        ci = proofs.trusted_ci
        evidence["ci"] = {"issuer": ci.issuer, "identity": ci.identity} if ci is not None else None
        covered: dict[str, Json] = {key: _plain(getattr(policy.lifecycle.coverage, key)) for key in COVERAGE_KEYS}
        values |= {"evidence": evidence, "coverage": covered, "actors": _actors(policy.lifecycle.actors)}
        return show_json(arguments, {**said, "values": values, "origins": origins})
    print(f"read from {policy.where}")
    for key, value in values.items():
        print(f"{key:<18}{escape(str(value))}  ({policy.lifecycle.origin(key)})")
    _show_lanes(policy.lifecycle)
    coverage = policy.lifecycle.coverage
    exempt = f"; exempt: {', '.join(coverage.exempt)}" if coverage.exempt else ""
    print(f"{'coverage':<18}{coverage.mode}{escape(exempt)}")
    _show_actors(policy.lifecycle.actors)
    given = ", ".join(proofs.env) or "nothing more"
    print(
        f"{'proofs':<18}time limit {proofs.timeout_seconds} s; the first {proofs.output_bytes} bytes of "
        f"output are searched; extra environment variables: {escape(given)}"
    )
    if not policy.anchored:
        print(f"the base has no policy yet; to add this one: {ANCHORING}")
    print("next: workpacket policy test")
    return exits.OK


def _show_lanes(policy: LifecyclePolicy) -> None:
    """Show the order of the lanes and, if no packet can move, why."""
    print(f"{'way':<18}{' > '.join(policy.lanes.way)}")
    for lane in policy.lanes.added:
        gates = added_gates(policy, ADVANCED, lane.token)
        way_out = f"the gate {' and the gate '.join(gates)}" if gates else "anyone may advance it"
        what = f"{lane.means}; " if lane.means else ""
        print(f"  {lane.token:<16}{escape(what)}section {escape(lane.section)}; way out: {escape(way_out)}")
    if policy.lanes.added:
        print("after changing the lanes, run: workpacket board sync, then: workpacket init")
    for fault in policy.lane_faults:
        print(f"not in effect: {escape(fault.message)} ({fault.code}); until this is fixed, no packet can move")


def _actors(actors: Actors) -> Json:
    return {
        actor.name: {
            "kind": actor.kind,
            "operator": actor.operator,
            "principal": actor.principal,
            "roles": [*actor.roles],
            "keys": sorted(actor.keys),
        }
        for actor in actors.by_name.values()
    }


def _show_actors(actors: Actors) -> None:
    """Show which key acts as whom, and who must not judge a packet."""
    for actor in actors.by_name.values():
        behind = f", operated by {actor.operator}" if actor.operator else ""
        what = f"{actor.kind}{behind}; {', '.join(actor.roles)}; {', '.join(sorted(actor.keys)) or 'without a key'}"
        print(f"  {escape(actor.name):<16}{escape(what)}")
    if actors.present and not actors.faults:
        print(f"{'judge differs from':<18} {', '.join(actors.separation)}")
    for fault in actors.faults:
        print(f"not in effect: {escape(fault)}; until this is fixed, no event is accepted")


def _named(item: str | ChecklistItem | AddedGate | AddedLane) -> str:
    """Describe a policy addition on one line."""
    match item:
        case ChecklistItem(item=name, section=section):
            return f"{name}: {section}"
        case AddedGate(gate=gate, on=on):
            return f"{gate}: {on}"
        case AddedLane(token=token, after=after, before=before):
            return f"{token}: after {after}, before {before}"
        case text:
            return text


def _plain(value: object) -> Json:
    if isinstance(value, LaneTable):
        return [_named(lane) for lane in value.added]
    if isinstance(value, tuple):
        return [_named(item) for item in value]
    return value if isinstance(value, str | int) else str(value)


def _test(arguments: Arguments, root: str) -> int:
    """Test whether the policy in the work tree is valid, because it would become the next policy."""
    findings = load_findings(POLICY_PATH, examine_file(root, POLICY_PATH, "policy").findings)
    if arguments.flag("json"):
        rows: list[Json] = [{"code": one.code, "line": one.line, "message": one.message} for one in findings]
        show_json(arguments, {"faults": rows})
    else:
        for one in findings:
            print(f"{POLICY_PATH}:{one.line}:{one.column}: {escape(one.message)} ({one.code})")
        print(f"{len(findings)} errors in {POLICY_PATH} in the work tree")
        print(f"next: {f'edit {POLICY_PATH}' if findings else 'workpacket policy show'}")
    return exits.FINDINGS if findings else exits.OK


POLICY = Command(
    "policy",
    run,
    arguments="show|test|trust|re-anchor",
    description="""
The policy on the base revision is in force, never the one in the work tree. `trust` adds your key to the work tree's
policy, and the table [approvals] if it is missing; the change takes effect once it is on the base.

`re-anchor` is for people who lost the keys: it records that the policy of the work tree replaces that of the base
although no key is left to approve the change. `check --base` accepts it only if the CI configuration on the base names
its digest.""",
    options=(
        Option("base", "the revision to read the policy from", value="REV"),
        Option("key", "trust: the key (default: the one that `key init` creates)", value="PATH"),
        Option("principal", "trust: the name in allowed_signers (default: git's user.email)", value="NAME"),
        Option("role", "trust: a role in the policy to give this person as well, such as validator", value="ROLE"),
        Option("reason", "re-anchor: why no key can approve the change", value="TEXT"),
        COMMIT,
    ),
    examples=(
        "workpacket policy show",
        "workpacket policy test",
        "workpacket policy trust --key ~/.ssh/approvals",
        "workpacket policy trust --key bob.pub --principal bob@example.org --role validator",
        "workpacket policy re-anchor --reason TEXT",
    ),
)


_BARE = lazy_pattern(r"[A-Za-z0-9_-]+")


def init(arguments: Arguments) -> int:
    """Create a key, and print the line that a policy change must add for this key."""
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
    """Register a key on a security key or passkey, and print the line that a policy change must add for this key."""
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
    """Create an event key, and print what a policy change must add for this key."""
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
        f"created {escape(key.path)} ({key.public.fingerprint}), without a passphrase: it signs events and "
        "cannot open a gate\n"
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
        f"next: {'do the first step above' if findings else 'nothing to do; run this again when keys change'}\n"
    )
    return status


def list_keys(arguments: Arguments) -> int:
    """List whom the base's policy trusts, and for what."""
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
    """Return the keys that may approve under the base's policy; None without a repository or if the policy is
    unreadable.
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


_KEY_ACTIONS = {"init": init, "doctor": doctor, "list": list_keys}


KEY = Command(
    "key",
    lambda arguments: _KEY_ACTIONS[chosen(arguments, [*_KEY_ACTIONS])](arguments),
    arguments="init [PATH] | doctor | list",
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


DECLARED = {command.name: command for command in (POLICY, KEY)}
