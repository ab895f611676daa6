"""Commands that decide who does the work: `prepare` and `claim`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Final

from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.packet_command import ACTING, actor_of, conclude, refuse, words_of
from workpacket.cli.team_claims import claim_for_all
from workpacket.errors import WorkpacketError
from workpacket.git.objects import list_tree
from workpacket.git.repository import Repository
from workpacket.git.revisions import commit_of, head_commit
from workpacket.git.worktrees import add_branch, add_worktree, branch_names
from workpacket.lifecycle.claims import claim, prepare, prepare_unmet, renew
from workpacket.lifecycle.facts import PacketFacts
from workpacket.problem import Location, Problem
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.execution import carry_out, facts_before, here
from workpacket.shell.work_done import branch_here


def _run_prepare(arguments: Arguments) -> int:
    repository = here()
    root = str(repository.root)
    name = packet_called(root, words_of(arguments, 1, "WP_ID")[0]).text
    actor = actor_of(arguments, repository)
    base_packet = packet_called(root, arguments.value("base")).text if arguments.flag("base") else ""
    facts = facts_before(repository, [name, *([base_packet] if base_packet else [])], actor)
    unmet = prepare_unmet(facts, facts.packets[name])
    if unmet:
        return refuse(arguments, name, unmet)
    branch = arguments.value("branch") or facts.policy.branch_of(name)
    start = facts.packets[base_packet].state.assignment.branch if base_packet else facts.target_branch
    base_commit = _start(repository, start)
    worktree = arguments.value("worktree")
    known_branch = branch_names(repository).get(branch)
    if worktree and not list_tree(repository, known_branch or base_commit, facts.packets[name].packet_path):
        where = f"{branch} is" if known_branch else f"{branch} would begin"
        return refuse(arguments, name, (_uncommitted(arguments, facts.packets[name], f"{where} at a commit", start),))
    if known_branch is None:
        add_branch(repository, branch, base_commit)
    if worktree:
        path = Path(os.path.abspath(worktree))
        add_worktree(repository, path, branch)
        # The log is read in every clone, where a path of this machine says nothing.
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
    return conclude(arguments, carried)


def _uncommitted(arguments: Arguments, packet: PacketFacts, where: str, start: str) -> Problem:
    path, name = packet.packet_path, packet.id.text
    again = f"workpacket prepare {name} --worktree {shlex.quote(arguments.value('worktree'))}"
    command = f"commit the governed files on {start}, then: {again}"
    return Problem("packet_uncommitted", f"{where} that does not contain {path}", Location(path), command)


def _start(repository: Repository, branch: str) -> str:
    """The commit from which the branch starts."""
    commit = commit_of(repository, branch) if branch in branch_names(repository) else head_commit(repository)
    if commit is None:
        raise WorkpacketError("unknown_revision", "there is no commit to start from yet", hint="git commit first")
    return commit


_PREPARE = Command(
    "prepare",
    _run_prepare,
    arguments="WP_ID",
    options=(
        Option("for", "who will do the work", value="NAME"),
        Option("branch", "the branch (default: named by the policy)", value="BRANCH"),
        Option("worktree", "create a work tree there", value="FOLDER"),
        Option("base", "start from the branch of another packet", value="WP_ID"),
        *ACTING,
    ),
    examples=("workpacket prepare WP-1-Parser-v1 --for coder-1 --worktree ../parser",),
)


def _run_claim(arguments: Arguments) -> int:
    if arguments.flag("renew"):
        return claim_for_all(arguments, renew)
    branch = arguments.value("branch") or branch_here(here())
    worktree = arguments.value("worktree")
    return claim_for_all(arguments, lambda facts, packet: claim(facts, packet, branch=branch, worktree=worktree))


_CLAIM = Command(
    "claim",
    _run_claim,
    arguments="WP_ID",
    description="The first to claim it wins; others are told who holds it, and until when.",
    options=(
        Option("renew", "extend the lease"),
        Option("branch", "the branch for the work, if none was prepared", value="BRANCH"),
        Option("worktree", "the work tree for the work", value="FOLDER"),
        *ACTING,
    ),
    examples=("workpacket claim WP-1-Parser-v1 --as coder-1", "workpacket claim WP-1-Parser-v1 --renew"),
)


DECLARED: Final = {command.name: command for command in (_PREPARE, _CLAIM)}
