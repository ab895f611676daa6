"""Rules about the keys of YAML and JSON documents, which keep keys that they do not know."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Final

from workpacket.documents.document import Document
from workpacket.problem import Problem
from workpacket.rules.rule import DocumentRule
from workpacket.text.source import Node

# Where mappings with known keys are, and the keys; `*` is every key or item.
_KNOWN: Final = {
    "batch_checkpoint": {
        "": "checkpoint",
        "checkpoint": "scope_name spec_name scope_path spec_path branch base timestamp updated_at last_batch"
        " last_commit tasks next_batch deferred_issues review_config phase_cursor incomplete_stages",
        "checkpoint.next_batch": "number title tasks parallel",
        "checkpoint.deferred_issues.*": "batch severity description location",
    },
    "batch_tasks": {"tasks.*": "id content status active_form activeForm depends_on files file evidence"},
    "orchestrator_gates": {"": "gate_logs", "gate_logs.*": "wpId type timestamp signature"},
    "validator_gates": {
        "": "validation_sessions archived_sessions sessions gates",
        "validation_sessions.*": "wpId verdict status gates",
        "validation_sessions.*.gates.*": "gate timestamp",
    },
    "commit_sidecar": {"": "schema_version sha run_id milestone_index milestone_title created_at tier"},
    "role_progress": {"": "feature team agent phase status last_action updated"},
    "work_package": {"": "work_package_id title lane dependencies subtasks owned_files history execution_mode"},
}
_SHORTEST = 5
_MOST_KEYS = 200


class KeyMisspelled(DocumentRule[Document]):
    """Key that is nearly the name of a missing field

    Unknown keys are kept and ignored, so the field has no value.

    Remedy: correct the key.
    """

    kinds = tuple(_KNOWN)
    severity = "info"
    strict_severity = "warning"

    def check(self, document: Document) -> Iterator[Problem]:
        if document.root is None:
            return
        for path, names in _KNOWN[document.kind].items():
            known = _names(names)
            for node in _at(document.root, path.split(".") if path else []):
                if known <= node.mapping.keys():
                    continue
                for key in [*node.mapping][:_MOST_KEYS]:
                    meant = _meant(key, known - node.mapping.keys()) if key not in known else ""
                    if meant and node.keys is not None and key in node.keys:
                        yield self.fault(node.keys[key], f"the key {key!r} is unknown, and {meant} is missing")


@cache
def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _at(node: Node, path: list[str]) -> Iterator[Node]:
    if not path:
        if node.keys is not None:
            yield node
        return
    first, rest = path[0], path[1:]
    below = [*node.mapping.values(), *node.items] if first == "*" else [node.get(first)]
    for one in below:
        if one is not None:
            yield from _at(one, rest)


def _meant(key: str, absent: frozenset[str]) -> str:
    """Return the field whose name differs from the key in one or two letters, or in hyphens and capitals."""
    plain = _plain(key)
    for name in sorted(absent):
        other = _plain(name)
        if abs(len(plain) - len(other)) > 1:
            continue
        if plain == other or (min(len(plain), len(other)) >= _SHORTEST and is_near(plain, other)):
            return name
    return ""


@lru_cache(maxsize=1024)
def _plain(key: str) -> str:
    return "".join(filter(str.isalnum, key)).casefold()


def is_near(one: str, other: str) -> bool:
    """Whether one word becomes the other by one letter more, less or different, or by two letters that are swapped."""
    if abs(len(one) - len(other)) > 1:
        return False
    begin = 0
    while begin < min(len(one), len(other)) and one[begin] == other[begin]:
        begin += 1
    rest, more = one[begin:], other[begin:]
    swapped = rest[:2] == more[:2][::-1] and rest[2:] == more[2:] and len(rest) > 1
    return swapped or rest[1:] == more[1:] or rest == more[1:] or rest[1:] == more
