"""The one registry of reason codes: all tables of the model, and the rules.

A new table is one import and one line here; a test finds the table that was forgotten.
"""

from __future__ import annotations

from functools import cache
from itertools import chain

from workpacket.model.reason_tables import (
    approval,
    approval_policy,
    approval_signature,
    approving,
    audit,
    batches,
    conflict,
    dependencies,
    document,
    environment,
    gate,
    git,
    integrity,
    internal,
    judging,
    justfile,
    markdown,
    roles,
    runs,
    settings,
    signing,
    starter,
    stops,
    text,
    transaction,
    usage,
    work_gates,
)
from workpacket.model.reasons import Reason, Registry
from workpacket.rules.by_kind import all_rules

TABLES: tuple[tuple[Reason, ...], ...] = (
    usage.REASONS,
    environment.REASONS,
    conflict.REASONS,
    document.REASONS,
    text.REASONS,
    markdown.REASONS,
    internal.REASONS,
    roles.REASONS,
    runs.REASONS,
    settings.REASONS,
    gate.REASONS,
    judging.REASONS,
    justfile.REASONS,
    work_gates.REASONS,
    git.REASONS,
    integrity.REASONS,
    transaction.REASONS,
    approval.REASONS,
    approval_signature.REASONS,
    approval_policy.REASONS,
    signing.REASONS,
    starter.REASONS,
    stops.REASONS,
    approving.REASONS,
    audit.REASONS,
    batches.REASONS,
    dependencies.REASONS,
)


@cache
def catalogue() -> Registry:
    """Every code. One that stands in two places raises ValueError."""
    return Registry(chain(*TABLES, (rule.reason() for rule in all_rules())))
