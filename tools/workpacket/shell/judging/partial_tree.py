"""Verdicts about a work tree that does not show everything: hidden files are called hidden, not gone."""

from __future__ import annotations

from collections.abc import Iterable

from workpacket.problem import Problem
from workpacket.shell.held import hidden


def judged_in_part(root: str, findings: Iterable[Problem]) -> list[Problem]:
    """The findings; where git leaves out governed files, that in the place of the damage which it seems to be.

    Nothing passes because of that: what could not be looked at is an error. A file that was simply deleted is not
    hidden. The log has lost it as soon as somebody commits.
    """
    missing = hidden(root)
    if missing is None:
        return list(findings)
    from workpacket.model.reason_tables.integrity import LOG_BY_CODE

    rest = [finding for finding in findings if finding.code not in LOG_BY_CODE]
    return [missing.problem, *rest]
