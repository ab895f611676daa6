"""What the commands share that look at packets and change nothing: facts without the lock, and unfinished writes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from workpacket.cli.options import Arguments
from workpacket.cli.packet_command import actor_of, packet_of, words_of
from workpacket.errors import WorkpacketError
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.approvals.gate_queries import Question
from workpacket.shell.governed_files import packet_called
from workpacket.shell.governing.commanding import here
from workpacket.shell.governing.gathering import gather
from workpacket.shell.held import note
from workpacket.shell.transactions.recovery import unfinished

# For commands that look only: who acts matters little, and a missing name is no reason to show nothing.
NOBODY = Actor("nobody", "agent")


def looking() -> Repository:
    """The repository, with a word on what an earlier command left unfinished, and on what this work tree lacks: looking
    recovers nothing."""
    repository = here()
    for left in unfinished(repository):
        paths = ", ".join(left.paths)
        sys.stderr.write(
            f"note: {left.command} was interrupted between files: {paths}; workpacket recover finishes it\n"
        )
    say_what_is_missing(str(repository.root))
    return repository


def say_what_is_missing(root: str) -> None:
    missing = note(root)
    if missing:
        sys.stderr.write(f"note: {escape(missing)}\n")


def who_looks(arguments: Arguments, repository: Repository) -> Actor:
    try:
        return actor_of(arguments, repository)
    except WorkpacketError:
        return NOBODY


def packet_facts(
    arguments: Arguments, *, words: int = 1, questions: Sequence[Question] = ()
) -> tuple[Repository, Facts, PacketFacts]:
    """The packet named first, with all that belongs to it."""
    repository = looking()
    name = packet_called(str(repository.root), words_of(arguments, words, "WP_ID")[0]).text
    facts = gather(repository, [name], who_looks(arguments, repository), questions)
    return repository, facts, packet_of(facts, name)


def show_json(arguments: Arguments, data: Mapping[str, Json]) -> int:
    sys.stdout.write(render_envelope(arguments.command.name, exits.OK, [], data))
    return exits.OK
