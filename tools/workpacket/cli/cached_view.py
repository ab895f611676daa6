"""Output of commands that look at every packet, shown again as long as documents, log and branches are the same."""

from __future__ import annotations

import gc
from importlib import import_module

from workpacket.cli.cached_output import Output, show, show_fresh
from workpacket.cli.workspace import open_workspace
from workpacket.documents.places import ROOTS
from workpacket.model.layout import GOVERNANCE_FOLDER
from workpacket.shell.checking.cache import Cache
from workpacket.shell.tree import find_documents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.cli.options import Arguments

# What lies below .GOV is described as whole folders (`looked_at`), which takes half as long for ten thousand files.
_ELSEWHERE = tuple(folder for folder in ROOTS if folder != GOVERNANCE_FOLDER)


def lasting(arguments: Arguments, module: str) -> int:
    """Runs `compute(arguments)` of a module of the command line, which is imported only if something has changed."""
    workspace = open_workspace()
    cache = Cache(workspace.common_dir, workspace.fingerprint)

    def compute() -> Output:
        # What is read stays until the end: to look for what may be thrown away is half of the time and finds nothing.
        before = gc.isenabled()
        gc.disable()
        try:
            output: Output = import_module(f"workpacket.cli.{module}").compute(arguments)
            return output
        finally:
            if before:
                gc.enable()

    try:
        if workspace.is_partial:
            return show_fresh(compute())  # which says so every time
        return show(arguments, workspace, find_documents(workspace.root, _ELSEWHERE), cache, compute)
    finally:
        cache.close()
