"""The one registry of reason codes: all tables of the model, and the rules.

A new table is one import and one line here; a test finds the table that was forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from workpacket.model.reason_tables import environment, internal, usage
from workpacket.model.reasons import Reason, Registry

TABLES: tuple[tuple[Reason, ...], ...] = (
    usage.REASONS,
    environment.REASONS,
    internal.REASONS,
)


def catalogue(rule_reasons: Iterable[Reason] = ()) -> Registry:
    """All codes; `rule_reasons` are those of the rules. A code that stands in two places raises ValueError."""
    return Registry(chain(*TABLES, rule_reasons))
