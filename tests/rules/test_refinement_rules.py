"""The rules that activation asks are those that a check of the refinement asks."""

from __future__ import annotations

from workpacket.rules.all_rules import RULES
from workpacket.rules.refinement_rules import REFINEMENT_RULES
from workpacket.rules.rule import DocumentRule


def test_every_rule_about_refinements_is_in_their_list_and_in_the_order_of_all() -> None:
    about = [
        rule for rule in RULES if issubclass(rule, DocumentRule) and (not rule.kinds or "refinement" in rule.kinds)
    ]
    listed = [rule for rule in REFINEMENT_RULES if rule in about]

    assert listed == about
