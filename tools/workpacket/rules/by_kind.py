"""Which rules judge a kind of document, and which compare documents with one another.

Only the rules of the kinds at hand are imported: a check of one stub needs no rule about boards. The rules in a module
that is named neither here nor in `workpacket.documents.reading.KINDS` are not run, and a test says so.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from workpacket.documents.reading import KINDS, kind_named, reader_of
from workpacket.rules.rule import DocumentRule, ReferenceRule, RepositoryRule, Rule

# The modules with the rules for every kind.
EVERY_KIND = ("text",)

# The modules with rules about documents taken together.
ACROSS = (
    "across_board",
    "drift",
    "across_registry",
    "across_packets",
    "across_approvals",
    "across_work_packages",
    "across_batches",
    "role_progress",
)

# The rules that were needed so far: the reason of a finding is looked up here without importing the others.
LOADED: dict[str, type[Rule]] = {}


@cache
def rules_in(module: str) -> tuple[type[Rule], ...]:
    """The rules of one module of this package, in their order there, which is the order in which they are run."""
    name = f"workpacket.rules.{module}"
    classes = [each for each in vars(import_module(name)).values() if isinstance(each, type) and issubclass(each, Rule)]
    rules = tuple(each for each in classes if each.__module__ == name and each.is_complete())
    if not rules:
        # `python -OO` takes the docstrings away, and a check by no rules would find nothing wrong with anything.
        raise RuntimeError(f"{name} has no rules: Python must not run with -OO, because rules are their docstrings")
    LOADED.update((rule.code(), rule) for rule in rules)
    return rules


@cache
def rules_for(kind: str) -> tuple[type[Rule], ...]:
    """The rules about one document of `kind` and about what it refers to."""
    modules = (*EVERY_KIND, *kind_named(kind).rules)
    return tuple(rule for module in modules for rule in rules_in(module) if _judges(rule, kind))


@cache
def rules_across() -> tuple[type[RepositoryRule], ...]:
    """The rules that compare documents with one another."""
    return tuple(rule for module in ACROSS for rule in rules_in(module) if issubclass(rule, RepositoryRule))


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule there is: imports them all."""
    modules = (*EVERY_KIND, *(module for kind in KINDS for module in kind.rules), *ACROSS)
    return tuple(rule for module in dict.fromkeys(modules) for rule in rules_in(module))


def _judges(rule: type[Rule], kind: str) -> bool:
    if issubclass(rule, DocumentRule):
        return rule.applies_to(reader_of(kind))
    return issubclass(rule, ReferenceRule) and kind in rule.kinds
