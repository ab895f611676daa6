"""The one registry of reason codes: all tables of the model, and the rules.

A code is looked up on demand: among the loaded rules, then table by table, and only then among all rules. A new table
must be listed here; a test reports one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import chain
from typing import cast

from workpacket.model.reasons import Reason, Registry
from workpacket.rules.rule import LOADED, all_rules

# The order in which they are imported, one by one, until a code is found.
TABLES = ("document", "command", "gate", "integrity", "approval", "stops")


def table(name: str) -> tuple[Reason, ...]:
    """Return the reasons in one module of `workpacket.model.reason_tables`."""
    return cast("tuple[Reason, ...]", import_module(f"workpacket.model.reason_tables.{name}").REASONS)


class Catalogue(Mapping[str, Reason]):
    """Every reason by its code and by its aliases. Iteration, or a lookup of an unknown code, imports all rules."""

    def __init__(self) -> None:
        self._found: dict[str, Reason] = {}
        self._tables = iter(TABLES)

    def __getitem__(self, code: str) -> Reason:
        if code not in self._found:
            self._found[code] = self._look_up(code)
        return self._found[code]

    def __iter__(self) -> Iterator[str]:
        return iter(_every_reason())

    def __len__(self) -> int:
        return len(_every_reason())

    def _look_up(self, code: str) -> Reason:
        rule = LOADED.get(code)
        if rule is not None:
            return rule.reason()
        for name in self._tables:
            self._found.update((known, reason) for reason in table(name) for known in (reason.code, *reason.aliases))
            if code in self._found:
                return self._found[code]
        return _every_reason()[code]


@cache
def _every_reason() -> Registry:
    """Return every code; raise ValueError if a code is defined twice."""
    return Registry(chain(*map(table, TABLES), (rule.reason() for rule in all_rules())))


@cache
def catalogue() -> Catalogue:
    return Catalogue()
