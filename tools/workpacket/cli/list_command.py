"""`workpacket list`: packets, stubs and work packages, filtered."""

from __future__ import annotations

from workpacket.cli.cached_output import Output, show, show_fresh
from workpacket.cli.options import Arguments, Command, Option
from workpacket.cli.workspace import open_workspace
from workpacket.shell.cache import Cache
from workpacket.shell.tree import find_documents

WORK_KINDS = ("stub", "packet", "work_package")


def run(arguments: Arguments) -> int:
    workspace = open_workspace()
    cache = Cache(workspace.common_dir, workspace.fingerprint)
    files = [found for found in find_documents(workspace.root) if found.kind in WORK_KINDS]

    def compute() -> Output:
        from workpacket.cli.listing import list_work

        return list_work(arguments, workspace.root, files, cache)

    try:
        if workspace.is_partial:
            from workpacket.cli.read_only import say_what_is_missing

            say_what_is_missing(workspace.root)
            return show_fresh(compute())
        return show(arguments, workspace, files, cache, compute)
    finally:
        cache.close()


COMMAND = Command(
    "list",
    "list packets and stubs",
    run,
    arguments="[PATTERN...]",
    description="Patterns are compared with ids; `*` stands for any characters.",
    options=(
        Option("lane", "only packets in this lane", value="LANE", many=True),
        Option("kind", "only this kind", choices=WORK_KINDS),
        Option("base", "only revisions of this base id", value="BASE_WP_ID"),
        Option("risk", "only this risk tier", value="TIER"),
        Option("depends-on", "only packets that depend on this one", value="WP_ID"),
    ),
    examples=("workpacket list --lane READY_FOR_DEV", "workpacket list 'WP-1-*' --json"),
)
