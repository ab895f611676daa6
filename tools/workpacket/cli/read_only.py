"""Shared by read-only commands about packets: facts gathered without the lock, notes about unfinished writes, and what
the output depends on besides documents.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from workpacket.cli.options import Arguments
from workpacket.cli.packet_command import actor_of, named_packet, packet_of
from workpacket.cli.workspace import Output, progress_bar
from workpacket.documents.places import PLACES
from workpacket.git.repository import Repository, local_branch, main_remote
from workpacket.git.run import run_git
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.gates import ends_unjudged, settles_by_landing
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.events import Actor
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.report.json_report import render_envelope
from workpacket.report.terminal import escape
from workpacket.shell.base import judging_policy, read_base_policy
from workpacket.shell.cache import Cache, RestsOn
from workpacket.shell.governed_files import LOG_STATE, removed_lately
from workpacket.shell.governing.execution import Question, gather, here
from workpacket.shell.held import note
from workpacket.shell.transactions import JOURNAL_FOLDER
from workpacket.shell.transactions.recovery import unfinished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.documents.summary import WorkSummary

# A read-only command hardly needs the actor, so a missing name must not prevent output.
NOBODY = Actor("nobody", "agent")


def open_for_reading() -> Repository:
    """Return the repository, with notes on unfinished writes, which read-only commands do not recover, and on files
    missing from this work tree.
    """
    repository = here()
    for left in unfinished(repository):
        paths = ", ".join(left.paths)
        sys.stderr.write(
            f"note: {left.command} was interrupted while writing {paths}; workpacket log recover completes it\n"
        )
    say_what_is_missing(str(repository.root))
    return repository


def say_what_is_missing(root: str) -> None:
    missing = note(root)
    if missing:
        sys.stderr.write(f"note: {escape(missing)}\n")


def reader_identity(arguments: Arguments, repository: Repository) -> Actor:
    try:
        return actor_of(arguments, repository)
    except WorkpacketError:
        return NOBODY


def asking_files(arguments: Arguments, repository: Repository) -> Sequence[str] | None:
    """Return the files on which the actor depends besides the repository's own settings; None if git includes files
    that cannot be listed.
    """
    if arguments.value("as") or os.environ.get("WORKPACKET_ACTOR"):
        return ()
    pattern = r"^(include\.|includeif\.|user\.name$)"
    answer = run_git(repository.root, "config", "-z", "--show-origin", "--get-regexp", pattern, check=False)
    parts = answer.text.split("\0")
    origins, settings = parts[:-1:2], parts[1::2]
    if any(setting.startswith("include") for setting in settings):
        return None
    home = os.path.expanduser("~")
    folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    own = os.environ.get("GIT_CONFIG_GLOBAL") or os.path.join(home, ".gitconfig")
    named = (origin.removeprefix("file:") for origin in origins if origin.startswith("file:"))
    return (own, os.path.join(folder, "git", "config"), *(os.path.join(repository.root, path) for path in named))


def packet_facts(arguments: Arguments, *, questions: Sequence[Question] = ()) -> tuple[Repository, Facts, PacketFacts]:
    """Return the first packet, with everything that is related to it."""
    repository = open_for_reading()
    name = named_packet(arguments, repository)
    facts = gather(repository, [name], reader_identity(arguments, repository), questions)
    lost = removed_lately(repository, name)
    if lost is not None:
        sys.stderr.write(f"note: {escape(lost.message)}; see: {lost.hint}\n")
    return repository, facts, packet_of(facts, name)


def show_json(arguments: Arguments, data: Mapping[str, Json]) -> int:
    sys.stdout.write(render_envelope(arguments.command.name, exits.OK, [], data))
    return exits.OK


# The folders of all documents below .GOV, with everything in them.
_SEGMENTS = [place.split("/") for place, _ in PLACES]
_DOCUMENTS = sorted({f"{top}/{folder}/" for top, folder, *_ in _SEGMENTS if top == GOVERNANCE_FOLDER})


def all_facts(repository: Repository) -> Facts:
    """Return the facts about all packets, for read-only commands."""
    return gather(repository, None, NOBODY)


def listed_facts(repository: Repository, cache: Cache, *, documents: bool = False) -> Facts:
    """Return the facts about all packets for lists, reading only what has changed since the facts were cached. With
    `documents`, the dependencies and risks that older logs lack are read from many documents at once.
    """

    from workpacket.shell.kept_logs import listed  # `show` reads one packet

    def read(paths: Sequence[str]) -> Mapping[str, WorkSummary]:
        from workpacket.shell.checking import work_summaries

        return work_summaries(str(repository.root), paths, cache, progress_bar())

    policy = partial(judging_policy, repository)
    read_all = partial(listed, cache=cache, policy_of_base=policy, read=read if documents else None)
    return gather(repository, None, NOBODY, read_all=read_all)


def unseen_landings(repository: Repository, facts: Facts) -> frozenset[str]:
    """Return the packets whose work is on the target branch, although their lanes do not show it on this branch."""
    outlines = () if facts.on_target else ((name, packet.outline) for name, packet in facts.packets.items())
    names = [
        name for name, one in outlines if settles_by_landing(one, facts.policy) or ends_unjudged(one, facts.policy)
    ]
    if not names:
        return frozenset()
    from workpacket.shell.judging.landed_work import landed

    tip = local_branch(repository, facts.target_here) or ""
    return landed(repository, tip, {name: facts.packets[name].log for name in names}, facts.policy)


def output(
    repository: Repository, text: str, *, lasts: bool = True, until: str = "", also: Sequence[str] = ()
) -> Output:
    """Return the output. `lasts` says whether the output remains correct as time passes, and `until` is the time at
    which it stops being correct, or ''; `also` are other files and folders that it depends on; folders end with '/'.
    Unfinished writes are reported every time until they are recovered.
    """
    journal = f"{repository.git_dir.joinpath(*JOURNAL_FOLDER)}/"
    files = (LOG_STATE, *_DOCUMENTS, *files_of_base(repository), *_below_root(repository, (journal, *also)))
    return Output(text, 0, RestsOn(files, clock=not lasts, until=until, unnamed=bool(unfinished(repository))))


def files_of_base(repository: Repository) -> list[str]:
    """Return the files and folders that say which commit is the base, whose policy applies."""
    places = (repository.common_dir / "packed-refs", repository.common_dir / "config", repository.git_dir / "HEAD")
    return _below_root(repository, (*map(str, places), f"{repository.common_dir / 'refs'}/"))


def _below_root(repository: Repository, paths: Iterable[str]) -> list[str]:
    relative = ((os.path.relpath(path, repository.root), path.endswith("/")) for path in paths)
    return [path.replace(os.sep, "/") + ("/" if is_folder else "") for path, is_folder in relative]


def fetch_first(arguments: Arguments) -> None:
    """Fetch from the main remote; if that is not possible, say so, and continue with the result of the last fetch."""
    if not arguments.flag("fetch"):
        return
    from workpacket.shell.claim_refs import ClaimRefs  # most commands do not look at the remote

    repository = here()
    remote = main_remote(repository)
    if not remote:
        sys.stderr.write("note: there is no remote to fetch from\n")
        return
    refused = ClaimRefs(repository, remote, read_base_policy(repository).lifecycle.claim_ref).fetch()
    if refused:
        why = " ".join(refused.split())
        old = "branches and claims are shown as of the last fetch"
        sys.stderr.write(f"note: {escape(f'{remote} was not fetched ({why})')}; {old}\n")
