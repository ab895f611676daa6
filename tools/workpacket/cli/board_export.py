"""`board export`: the page, into a new file or to standard output."""

from __future__ import annotations

import json
import sys

from workpacket.cli.board_view import cards_of
from workpacket.cli.looked_at import everything
from workpacket.cli.looking import looking
from workpacket.cli.new_file import write_new
from workpacket.cli.options import Arguments
from workpacket.cli.progress import progress_bar
from workpacket.cli.workspace import open_workspace
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.report.board import columns
from workpacket.report.board_page import render_page
from workpacket.report.door import escape
from workpacket.report.json_report import render_envelope
from workpacket.shell.base.policy import lanes_here
from workpacket.shell.checking.cache import Cache
from workpacket.shell.checking.repository import known_or_examined
from workpacket.shell.tree import find_documents
from workpacket.value import replace


def export(arguments: Arguments) -> int:
    repository = looking()
    titles = _titles()
    facts = everything(repository)
    found = [
        (replace(card, title=titles.get(card.id, "")), at)
        for card, at in cards_of(arguments, repository, facts, published=True)
    ]
    page = render_page(
        columns((card for card, _ in found), facts.policy.lanes), max((at for _, at in found), default="")
    )
    target = arguments.value("out")
    if target:
        write_new(target, page.encode())
    if arguments.flag("json"):
        data: dict[str, Json] = {"out": target, **({} if target else {"page": page})}
        sys.stdout.write(render_envelope("board", exits.OK, [], data))
    elif target:
        print(f"{len(found)} packets written to {escape(target)}")
        print(f"next: open {escape(target)} in a browser")
    else:
        sys.stdout.write(page)
    return exits.OK


def _titles() -> dict[str, str]:
    """What each packet is about, else what its stub says; what did not change is known to the cache of `check`."""
    workspace = open_workspace()
    work = [found for found in find_documents(workspace.root) if found.kind in ("stub", "packet")]
    work.sort(key=lambda found: found.kind == "packet")
    cache = Cache(workspace.common_dir, workspace.fingerprint)
    try:
        results = known_or_examined(workspace.root, work, cache, progress_bar(), lanes_here(workspace.root))
    finally:
        cache.close()
    summaries = [json.loads(result.summary) for result in results if result.summary]
    return {summary["id"]: " ".join(summary["title"].split()) for summary in summaries if summary["title"]}
