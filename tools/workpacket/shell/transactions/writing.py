"""Rewrites documents as one transaction: `check --fix` and `fmt` change all of the files that they mean to, or none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workpacket.git.repository import find_repository
from workpacket.model.layout import POLICY_PATH
from workpacket.model.plan import FileChange, Plan
from workpacket.shell.actor import moment
from workpacket.shell.held import require_shown
from workpacket.shell.transactions.transaction import writing
from workpacket.text.source import Source


def rewrite(root: str, command: str, changes: Sequence[tuple[Source, Source]]) -> None:
    """Puts the second source of each pair in the place of the first, if that is still what the file holds."""
    require_shown(root, (POLICY_PATH,))  # which says what lanes there are
    if not changes:
        return
    files = tuple(FileChange(before.path, before.digest, after.encode()) for before, after in changes)
    with writing(find_repository(Path(root)), command) as transaction:
        transaction.apply(Plan(command, moment().tx, files))
