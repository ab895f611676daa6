"""How a kind of Markdown document is laid out: its sections and fields, as data.

Readers, rules, `fmt`, templates and the reference pages all read this, so they cannot disagree about a heading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# What stands in a section: `fields` are `KEY: value` lines; `items` a list; `checklist` a list whose items can be
# ticked; `prose` anything; `mixed` fields with prose around them.
Shape = Literal["fields", "items", "checklist", "prose"]


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field. `label` is how it is written, the key of the value tree is `label` in lower case."""

    label: str
    required: bool = False
    many: bool = False
    aliases: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return self.label.lower()


@dataclass(frozen=True, slots=True)
class SectionSpec:
    """One section. `heading` is how it is written; `key` and `aliases` are compared by `heading_key`."""

    key: str
    heading: str
    shape: Shape
    required: bool = False
    fields: tuple[FieldSpec, ...] = ()
    # Headings of older documents, as `heading_key` gives them.
    aliases: tuple[str, ...] = ()

    def field(self, key: str) -> FieldSpec | None:
        return next((spec for spec in self.fields if key == spec.key or key in spec.aliases), None)


@dataclass(frozen=True, slots=True)
class Layout:
    """The sections of a kind, in the order of its template, all headings of level `level`."""

    level: int
    sections: tuple[SectionSpec, ...]

    def section(self, key: str) -> SectionSpec | None:
        """The section whose heading has this key."""
        return next((spec for spec in self.sections if key == spec.key or key in spec.aliases), None)


def heading_key(title: str) -> str:
    """A heading for comparison: `INTENT (DRAFT)`, `Intent (draft)` and `Intent` are all `intent`.

    Remarks in parentheses or brackets, a value behind a colon, marks and emoji do not count.
    """
    name = title
    for opening in "([:":
        name = name.partition(opening)[0]
    letters = "".join(character if character.isalnum() and character.isascii() else " " for character in name)
    return "_".join(letters.casefold().split())
