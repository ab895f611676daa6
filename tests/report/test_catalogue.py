"""One registry, in which no table is forgotten and no code stands twice."""

from __future__ import annotations

import pkgutil

import pytest

from workpacket.model import exits, reason_tables
from workpacket.model.reasons import Reason, Registry
from workpacket.report.catalogue import TABLES, Catalogue, catalogue, table
from workpacket.rules.rule import all_rules

MODULES = [module.name for module in pkgutil.iter_modules(reason_tables.__path__)]


def test_the_tables_of_this_layer_are_there() -> None:
    assert {"command", "gate", "integrity"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_reason_tables_is_in_the_catalogue(name: str) -> None:
    assert name in TABLES, f"add {name} to TABLES in tools/workpacket/report/catalogue.py"


def test_rules_join_the_registry() -> None:
    assert {rule.code() for rule in all_rules()} <= set(catalogue())
    assert len(catalogue()) == len(all_rules()) + sum(len(table(name)) for name in TABLES)


def test_a_code_given_twice_is_refused() -> None:
    reason = catalogue()["internal_error"]
    with pytest.raises(ValueError, match="'internal_error' is registered twice"):
        Registry([reason, reason])


FAMILY_STATUS = {
    "usage": {exits.USAGE},
    "environment": {exits.ENVIRONMENT},
    "internal": {exits.INTERNAL, exits.INTERRUPTED},
}


def test_the_exit_status_of_a_code_is_that_of_its_family() -> None:
    for reason in catalogue().values():
        assert reason.exit_code in FAMILY_STATUS.get(reason.family, {reason.exit_code}), reason.code


def test_every_reason_is_written_out() -> None:
    def written_out(reason: Reason) -> bool:
        return reason.explanation.endswith(".") and reason.remedy.endswith(".") and reason.title[0].isupper()

    assert [reason.code for reason in catalogue().values() if not written_out(reason)] == []


def test_a_code_looked_up_alone_is_the_one_in_the_list() -> None:
    for code, reason in Registry(catalogue().values()).items():
        assert Catalogue()[code] == reason


def test_an_alias_resolves_and_an_unknown_code_does_not() -> None:
    aliased = next(reason for reason in catalogue().values() if reason.aliases)
    assert Catalogue()[aliased.aliases[0]] == aliased
    assert "no_such_code" not in Catalogue()
