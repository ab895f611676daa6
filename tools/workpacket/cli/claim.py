"""Commands that determine who does the work: `prepare` and `claim`. A claim is visible in all clones if the policy
names a store: a lease is taken there before the log is written.

The log in git remains authoritative and records who holds what, but a clone sees another clone's log only after a
merge, by which time two people may already have done the same work. The remote (`shell.claim_refs`) or the store shows
a claim immediately. If it cannot be reached, the claim is still made, with a note that it may not be exclusive.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import (
    ACTING,
    COMMIT,
    DECLARING,
    SIGN,
    actor_of,
    conclude,
    declared,
    is_package_id,
    packet_command,
    refuse,
    signed_first,
    words_of,
)
from workpacket.git.objects import list_tree, status
from workpacket.git.repository import (
    Repository,
    add_branch,
    add_worktree,
    branch_here,
    head_commit,
    local_branch,
    main_remote,
    switch_branch,
    without_remote,
)
from workpacket.lifecycle.claims import claim, claim_refusal, prepare, prepare_unmet, renew
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.moves import Answer, Planned
from workpacket.lifecycle.policy import LifecyclePolicy
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.model.ids import is_packet_id
from workpacket.model.layout import GOVERNANCE_FOLDER, LOG_FOLDER
from workpacket.problem import Location, Problem, WorkpacketError
from workpacket.report.terminal import escape
from workpacket.shell.base import read_base_policy
from workpacket.shell.claim_refs import ClaimRefs, RemoteClaim, Unarbitrated, held_elsewhere, leases_in
from workpacket.shell.governed_files import GovernedFiles, packet_called
from workpacket.shell.governing.execution import ACTIVATION, carry_out, facts_before, gather, here
from workpacket.shell.held import look
from workpacket.shell.transactions.transaction import complete_unfinished
from workpacket.value import NamedTuple, replace

if TYPE_CHECKING:
    from workpacket.runtime.stores.contract import Store  # the runtime is imported only if a policy needs it


Decide = Callable[[Facts, PacketFacts], Answer]

PATIENCE = 3.0  # seconds to wait for a server that does not answer
AWAY = "store_busy"


def _run_prepare(arguments: Arguments) -> int:
    repository = here()
    root = str(repository.root)
    name = packet_called(root, words_of(arguments, 1, "WP_ID")[0]).text
    actor = actor_of(arguments, repository)
    base_packet = packet_called(root, arguments.value("on")).text if arguments.flag("on") else ""
    facts = facts_before(repository, [name, *([base_packet] if base_packet else [])], actor)
    unmet = prepare_unmet(facts, facts.packets[name])
    if unmet:
        return refuse(arguments, name, unmet)
    branch = arguments.value("branch") or facts.policy.branch_of(name)
    start = facts.packets[base_packet].state.assignment.branch if base_packet else facts.target_branch
    base_commit = _start(repository, start)
    worktree = arguments.value("worktree")
    known_branch = local_branch(repository, branch)
    if worktree and not list_tree(repository, known_branch or base_commit, facts.packets[name].packet_path):
        where = f"{branch} is" if known_branch else f"{branch} would begin"
        return refuse(arguments, name, (_uncommitted(arguments, facts.packets[name], f"{where} at a commit", start),))
    if known_branch is None:
        add_branch(repository, branch, base_commit)
    if worktree:
        path = Path(os.path.abspath(worktree))
        add_worktree(repository, path, branch)
        # Every clone reads the log, and a path on this machine means nothing there.
        worktree = os.path.relpath(path, repository.root)
    assignee = arguments.value("for") or actor.id
    carried = carry_out(
        repository,
        "prepare",
        [name],
        actor,
        lambda now: prepare(
            now,
            now.packets[name],
            assignee=assignee,
            branch=branch,
            worktree=worktree,
            base_commit=base_commit,
            base_packet=base_packet,
        ),
    )
    return conclude(arguments, carried, name)


def _uncommitted(arguments: Arguments, packet: PacketFacts, where: str, start: str) -> Problem:
    path, name = packet.packet_path, packet.id.text
    again = f"workpacket packet prepare {name} --worktree {shlex.quote(arguments.value('worktree'))}"
    command = f"commit the governed files on {start}, then: {again}"
    return Problem("packet_uncommitted", f"{where}, which does not contain {path}", Location(path), command)


def _start(repository: Repository, branch: str) -> str:
    """Return the commit from which the branch starts."""
    commit = local_branch(repository, branch) or head_commit(repository)
    if commit is None:
        raise WorkpacketError(
            "unknown_revision", "there is no commit to start from yet", hint="commit something first: git commit"
        )
    return commit


_PREPARE = Command(
    "prepare",
    _run_prepare,
    arguments="WP_ID",
    options=(
        Option("for", "who will do the work", value="NAME"),
        Option("branch", "the branch (default: set by the policy)", value="BRANCH"),
        Option("worktree", "create a work tree at this path", value="FOLDER"),
        Option("on", "start from another packet's work", value="WP_ID"),
        *ACTING,
    ),
    examples=("workpacket packet prepare WP-1-Parser-v1 --for coder-1 --worktree ../parser",),
)


def _run_claim(arguments: Arguments) -> int:
    if arguments.words and is_package_id(arguments.words[0]):
        from workpacket.cli.implement import claim as claim_package

        return claim_package(arguments)
    if arguments.flag("renew"):
        return claim_for_all(arguments, renew)
    branch = arguments.value("branch") or branch_here(here())
    worktree, said = arguments.value("worktree"), declared(arguments)
    return claim_for_all(
        arguments, lambda facts, packet: claim(facts, packet, branch=branch, worktree=worktree, declared=said)
    )


_CLAIM = Command(
    "claim",
    _run_claim,
    arguments="WP_ID",
    description="The first claim wins; later claims are refused with the name of the holder and the time when the "
    "lease expires.",
    options=(
        Option("renew", "extend the lease instead of claiming"),
        Option("remote", "let the remote decide who was first, across all clones (default: set by the policy)"),
        Option("branch", "the branch for the work, if none has been prepared", value="BRANCH"),
        Option("worktree", "the work tree to work in", value="FOLDER"),
        *DECLARING,
        *ACTING,
    ),
    examples=("workpacket claim WP-1-Parser-v1 --as coder-1", "workpacket claim WP-1-Parser-v1 --renew"),
)


def _run_start(arguments: Arguments) -> int:
    """Start a light packet in one transaction; a stub is activated first, in a separate transaction."""
    repository = here()
    name = packet_called(str(repository.root), words_of(arguments, 1, "WP_ID")[0]).text
    actor, said = actor_of(arguments, repository), declared(arguments)
    approved = _approved(arguments, repository, name, actor)
    if approved != exits.OK:
        return approved
    complete_unfinished(repository, "start")
    look(repository, head=False).require_visible()
    facts = gather(repository, [name], actor, (ACTIVATION,))
    if facts.packets[name].state.lane == "STUB" and not facts.packets[name].light:
        unmet = _activate_stub(repository, name, actor)
        if unmet:
            return refuse(arguments, name, unmet)
        facts = gather(repository, [name], actor)
    packet = facts.packets[name]
    branch = _branch_for(arguments, facts, packet)
    unmet = _starting(facts, packet, branch) or _elsewhere(repository, facts, branch)
    unmet = unmet or _not_committed(repository, name, branch, actor)
    if unmet:
        return refuse(arguments, name, unmet)
    before, tip = branch_here(repository), local_branch(repository, branch) or ""
    if before != branch:
        switch_branch(repository, branch, "" if tip else head_commit(repository) or "")

    found: Iterable[str] = ()

    def decide(now: Facts, packet: PacketFacts) -> Answer:
        nonlocal found
        found = packet.log.by_id
        if not packet.light:
            return claim(now, packet, branch=branch, worktree="", declared=said, switched=True)
        from workpacket.lifecycle.forms import start_light

        return start_light(now, packet, branch, said)

    with _decided_by_remote(arguments, decide, facts.policy) as decided:
        carried = carry_out(
            repository, "start", [name], actor, lambda now: decided(now, now.packets[name]), questions=(ACTIVATION,)
        )
    if not isinstance(carried.answer, Planned) and before not in {"", branch}:
        # If another process started the packet in the meantime, it works on the branch that is checked out now.
        known = (
            {
                entry.path.rpartition("/")[2].removesuffix(".json")
                for entry in list_tree(repository, tip, f"{LOG_FOLDER}/{name}")
            }
            if tip
            else set()
        )
        if known.union(packet.log.by_id).issuperset(found):
            switch_branch(repository, before)
            hints = ((one, f"git switch {branch}, then: {one.hint}") for one in carried.answer)
            carried = replace(carried, answer=tuple(replace(one, hint=hint) for one, hint in hints))
    return sync_team_claim(arguments, conclude(arguments, carried, name))


def _branch_for(arguments: Arguments, facts: Facts, packet: PacketFacts) -> str:
    return packet.state.assignment.branch or arguments.value("branch") or facts.policy.branch_of(packet.id.text)


def _approved(arguments: Arguments, repository: Repository, name: str, actor: Actor) -> int:
    """With --sign, have a person approve whatever can be started; return the exit status of the approval."""
    if not arguments.flag("sign"):
        return exits.OK
    facts = gather(repository, [name], actor)
    packet = facts.packets[name]
    if packet.state.lane != "STUB":
        return exits.OK  # what was activated is approved
    unmet = _elsewhere(repository, facts, _branch_for(arguments, facts, packet))
    return refuse(arguments, name, unmet) if unmet else signed_first(arguments, name)


def _starting(facts: Facts, packet: PacketFacts, branch: str) -> tuple[Problem, ...]:
    if not packet.light:
        return claim_refusal(facts, packet, branch)
    from workpacket.lifecycle.forms import start_unmet  # `claim` does not need the reader of the light form

    return start_unmet(facts, packet, branch)


def _activate_stub(repository: Repository, name: str, actor: Actor) -> tuple[Problem, ...]:
    from workpacket.lifecycle.activation import activate

    def decide(facts: Facts) -> Answer:
        return activate(facts, facts.packets[name])

    answer = carry_out(repository, "activate", [name], actor, decide, questions=(ACTIVATION,)).answer
    return () if isinstance(answer, Planned) else answer


def _elsewhere(repository: Repository, facts: Facts, branch: str) -> tuple[Problem, ...]:
    """Return why the packet's branch cannot be started here: there is no commit, or another packet's branch is checked
    out.
    """
    now, target = branch_here(repository), without_remote(repository, facts.target_branch)
    if head_commit(repository) is None:
        message = "there is no commit yet for the branch to start from"
        return (Problem("work_branch_missing", message, hint="git add .GOV && git commit -m 'Governance'"),)
    if now in {branch, target} or not target:
        return ()
    message = f"{now or 'a detached HEAD'} is checked out, but the work starts from {target}"
    # git would take uncommitted events along, and the next commit on the other branch would include them.
    events = status(repository, LOG_FOLDER)
    commit = f"git add {GOVERNANCE_FOLDER} && git commit -m 'Start the work', then: " if now and events else ""
    return (Problem("other_work_branch", message, hint=f"{commit}git switch {target}"),)


def _not_committed(repository: Repository, name: str, branch: str, actor: Actor) -> tuple[Problem, ...]:
    """Refuse if other work was started without a commit: committing this work would include its events."""
    names = dict.fromkeys(entry.path.split("/")[2] for entry in status(repository, LOG_FOLDER))
    others = [other for other in names if other != name and is_packet_id(other)]
    packets = gather(repository, others, actor).packets if others else {}
    for other in (other for other in others if other in packets):
        own = packets[other].state.assignment.branch
        if own and own != branch:
            commit = f"git switch {own} && git add {LOG_FOLDER}/{other} && git commit -m 'Start {other}'"
            message = f"the start of {other} has not been committed yet; a commit on {branch} would include it"
            return (Problem("packet_uncommitted", message, hint=f"{commit}, then: git switch -"),)
    return ()


_START = Command(
    "start",
    _run_start,
    arguments="WP_ID",
    description="""
Anything that prevents the packet from being activated and claimed is listed, and nothing is written. The branch starts
at the current commit; uncommitted files are kept.""",
    options=(
        Option("branch", "the branch (default: set by the policy)", value="BRANCH"),
        Option("remote", "let the remote decide who was first, across all clones (default: set by the policy)"),
        SIGN,
        COMMIT,
        *DECLARING,
        *ACTING,
    ),
    examples=("workpacket start WP-1-Greet-The-User-v1", "workpacket start WP-1-Greet-The-User-v1 --commit"),
)


DECLARED: Final = {command.name: command for command in (_PREPARE, _CLAIM, _START)}


class _Team(NamedTuple):
    """The store specified in the policy; None, with the reason, if it cannot be reached."""

    store: Store | None
    why: str
    hours: int


def claim_for_all(arguments: Arguments, decide: Decide) -> int:
    """Make or renew a claim while no other clone can make one."""
    repository = here()
    # Checked before any request to a server, and before objects that a partial clone lacks are read.
    look(repository, head=False).require_visible()
    policy = read_base_policy(repository).lifecycle
    team = _team(policy)
    if team is None:
        with _decided_by_remote(arguments, decide, policy) as decided:
            return packet_command(arguments, decided, repository=repository)
    if team.store is None:
        return packet_command(arguments, _noting(decide, "unseen", _unseen(team.why)))
    try:
        return _claim(arguments, decide, team.store, team.hours)
    finally:
        team.store.close()


def sync_team_claim(arguments: Arguments, status: int) -> int:
    """Keep the shared claim only while someone works on the packet; called after a command that moved a packet.
    `status` is the exit status of that command.
    """
    team = _team(read_base_policy(here()).lifecycle) if status == 0 else None
    if team is not None and team.store is not None:
        try:
            _sync(arguments, team.store, team.hours)
        finally:
            team.store.close()
    elif team is not None:
        sys.stderr.write(f"note: {escape(team.why)}; in other clones, the claim expires with its lease\n")
    return status


def _sync(arguments: Arguments, store: Store, hours: int) -> None:
    """Synchronize the claims. A clone may release a claim only if the clone's log records the holder."""
    from workpacket.runtime.errors import LeaseHeld

    stream = _name_of(arguments)
    packet = gather(here(), [stream.removeprefix("packet/")], actor_of(arguments, here())).packets
    state = packet[stream.removeprefix("packet/")].state
    held = store.lease(stream)
    if state.lane != "IN_PROGRESS" or state.lease is None:
        if held is not None and held.holder in state.holders:
            store.release(held)
        return
    holder = state.lease.holder
    try:
        store.acquire(stream, holder, hours * 3600.0, over=held.token if held and held.holder == holder else None)
    except LeaseHeld as other:
        said = f"{other.details['holder']} holds {state.packet} in another clone, and {holder} holds it in this one"
        sys.stderr.write(
            f"note: {escape(said)}; agree on who continues, and have the other holder run `workpacket packet release`\n"
        )


def _claim(arguments: Arguments, decide: Decide, store: Store, hours: int) -> int:
    from workpacket.runtime.errors import LeaseHeld

    stream = _name_of(arguments)
    packet = stream.removeprefix("packet/")
    actor = actor_of(arguments, here()).id
    before = store.lease(stream)
    over = before.token if before is not None and before.holder == actor else None
    try:
        lease = store.acquire(stream, actor, hours * 3600.0, over=over)
    except LeaseHeld as held:
        holder, left = held.details["holder"], held.details["seconds_left"]
        until = f"for at most {float(str(left)) / 3600:.1f} more hours"
        unmet = Problem("claimed_by_other", f"{holder} holds {packet} in another clone, {until}", hint="git pull")
        return refuse(arguments, packet, (unmet,))
    status = 9
    try:
        status = packet_command(arguments, _noting(decide, "taken", ""))
        return status
    finally:
        if status != 0 and over is None:
            store.release(lease)


def _name_of(arguments: Arguments) -> str:
    return f"packet/{packet_called(str(here().root), arguments.words[0]).text}"


def _team(policy: LifecyclePolicy) -> _Team | None:
    """Return None if the base's policy does not specify a store."""
    if not policy.claim_store:
        return None
    url = os.environ.get(policy.claim_store, "")
    if not url:
        return _Team(None, f"the environment variable {policy.claim_store} is not set here", policy.lease_hours)
    from workpacket.runtime.errors import RuntimeFault
    from workpacket.runtime.stores.place import store_at

    try:
        return _Team(store_at(url, patience=PATIENCE), "", policy.lease_hours)
    except RuntimeFault as fault:
        if fault.code != AWAY:
            raise
        return _Team(None, "the team's claim store is not responding", policy.lease_hours)


@contextmanager
def _decided_by_remote(arguments: Arguments, decide: Decide, policy: LifecyclePolicy) -> Iterator[Decide]:
    """Have the remote decide on the claims that `decide` plans, if the command line or the policy says so. A claim that
    does not reach the log is released.
    """
    if not arguments.flag("remote") and policy.claims != "remote":
        yield decide
        return
    repository = here()
    remote = main_remote(repository)
    refs = ClaimRefs(repository, remote, policy.claim_ref)
    taken: list[RemoteClaim] = []

    def decided(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        if not isinstance(answer, Planned):
            return answer
        if not remote:
            return _noted(answer, "unseen", _unseen("local only: there is no remote to decide"))
        lease, end = next((event.text("lease"), event.text("expires_at")) for event in answer.plan.events
                          if event.text("lease"))  # fmt: skip
        wanted = RemoteClaim(packet.id.text, facts.actor.id, lease or "", end or "")
        claim = refs.take(wanted, facts.moment.now, leases_in(packet.log))
        if isinstance(claim, Unarbitrated):
            return _noted(answer, "unseen", _unseen(f"local only: {remote} did not decide ({claim.why})"))
        if claim.lease != wanted.lease:
            return (held_elsewhere(claim, remote, refs.ref(claim.packet)),)
        taken.append(claim)
        return _noted(answer, "taken", "")

    try:
        yield decided
    finally:
        for claim in taken:
            governed = GovernedFiles(str(repository.root))
            governed.look_for_log(claim.packet)
            if claim.lease not in leases_in(governed.log(claim.packet)):
                refs.give_back(claim)


def _unseen(why: str) -> str:
    return (
        f"{why}: this clone and others cannot see each other's claims; if someone else claims the packet too, "
        "`workpacket check` reports the conflict when the branches are merged"
    )


def _noting(decide: Decide, word: str, note: str) -> Decide:
    def noted(facts: Facts, packet: PacketFacts) -> Answer:
        answer = decide(facts, packet)
        return _noted(answer, word, note) if isinstance(answer, Planned) else answer

    return noted


def _noted(answer: Planned, word: str, note: str) -> Planned:
    data: dict[str, Json] = {**answer.data, "shared_claim": word}
    return replace(answer, data=data, notes=(*answer.notes, *([note] if note else [])))
