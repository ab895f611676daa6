"""Besides documents: what the output of a command that looks at every packet rests on."""

from __future__ import annotations

import os
from collections.abc import Sequence

from workpacket.cli.cached_output import Output
from workpacket.cli.progress import progress_bar
from workpacket.cli.read_only import NOBODY
from workpacket.documents.places import PLACES
from workpacket.git.repository import Repository
from workpacket.lifecycle.facts import Facts
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.shell.checking.cache import MANY
from workpacket.shell.governing.gathering import gather
from workpacket.shell.log_files import LOG_STATE
from workpacket.shell.transactions.leftovers import JOURNAL_FOLDER
from workpacket.shell.transactions.recovery import unfinished
from workpacket.value import replace

# The folders of all documents below .GOV, with everything that lies in them.
_SEGMENTS = [place.split("/") for place, _ in PLACES]
_DOCUMENTS = sorted({f"{top}/{folder}/" for top, folder, *_ in _SEGMENTS if top == GOVERNANCE_FOLDER})


def everything(repository: Repository) -> Facts:
    """The facts about all packets, for somebody who only looks."""
    return gather(repository, None, NOBODY)


def everything_said(repository: Repository) -> Facts:
    """The same for one who asks all of them what they wait for: of many, without reading what was read before."""
    facts = everything(repository)
    if len(facts.packets) < MANY:
        return facts
    from workpacket.shell.checking.summaries import work_summaries

    says = work_summaries(repository, progress_bar())
    told = {
        name: replace(packet, stub_says=says.get(packet.stub_path), packet_says=says.get(packet.packet_path))
        for name, packet in facts.packets.items()
    }
    return replace(facts, packets=told)


def output(repository: Repository, text: str, *, lasts: bool = True, also: Sequence[str] = ()) -> Output:
    """`lasts` is whether the output stays true while time goes by; `also` are further files that it rests on."""
    places = [
        repository.common_dir / "packed-refs",
        repository.common_dir / "config",
        repository.git_dir / "HEAD",
    ]
    folders = [repository.common_dir / "refs", repository.git_dir.joinpath(*JOURNAL_FOLDER)]
    extras = [os.path.relpath(path, repository.root).replace(os.sep, "/") for path in (*map(str, places), *also)]
    extras += [f"{os.path.relpath(path, repository.root)}/".replace(os.sep, "/") for path in folders]
    return Output(text, 0, [LOG_STATE, *_DOCUMENTS, *extras], repeatable=lasts and not unfinished(repository))
