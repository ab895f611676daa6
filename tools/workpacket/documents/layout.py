"""How a kind of Markdown document is laid out: its sections and fields, as data.

Readers, rules, `fmt`, templates and the reference pages all read this, so they cannot disagree about a heading.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Literal

from workpacket.text.keys import normal_key
from workpacket.value import Value

# What stands in a section: `fields` are `KEY: value` lines; `items` a list; `checklist` a list whose items can be
# ticked; `prose` anything.
Shape = Literal["fields", "items", "checklist", "prose"]


class FieldSpec(Value):
    """One field. `label` is how it is written, its name in the tree of values is the label in snake case."""

    label: str
    required: bool = False
    many: bool = False
    bold: bool = False
    aliases: tuple[str, ...] = ()

    @cached_property
    def key(self) -> str:
        return normal_key(self.label)

    @property
    def written(self) -> str:
        """How the field begins in a canonical document."""
        return f"- **{self.label}:**" if self.bold else f"- {self.label}:"


class SectionSpec(Value):
    """One section. `heading` is how it is written, `key` its name in the tree of values."""

    key: str
    heading: str
    shape: Shape
    required: bool = False
    fields: tuple[FieldSpec, ...] = ()
    # Keys of headings under which the same section is known too.
    aliases: tuple[str, ...] = ()
    repeatable: bool = False

    def field(self, name: str) -> FieldSpec | None:
        """The field with this name, or this alias."""
        return self._by_name.get(name)

    @cached_property
    def _by_name(self) -> dict[str, FieldSpec]:
        return {name: spec for spec in reversed(self.fields) for name in (spec.key, *spec.aliases)}


class Layout(Value):
    """The sections of a kind, in the order of its template. Headings of `levels` count; the first one is canonical.

    `extra` sections may stand besides, wherever their author put them. `older` ones belong to earlier forms of the
    kind; they are read, and reported as what they are. `frames` are keys of headings that only hold the sections.
    """

    levels: tuple[int, ...]
    sections: tuple[SectionSpec, ...]
    extra: tuple[SectionSpec, ...] = ()
    older: tuple[SectionSpec, ...] = ()
    frames: frozenset[str] = frozenset()

    def section(self, title: str) -> SectionSpec | None:
        """The section with this heading, in whatever spelling."""
        return self._by_heading.get(heading_key(title))

    @cached_property
    def _by_heading(self) -> dict[str, SectionSpec]:
        everything = (*self.sections, *self.extra, *self.older)
        return {key: spec for spec in reversed(everything) for key in (heading_key(spec.heading), *spec.aliases)}


@lru_cache(maxsize=4096)
def heading_key(title: str) -> str:
    """A heading for comparison: `INTENT (DRAFT)`, `Intent (draft)` and `Intent` are all `intent`.

    Remarks in parentheses or brackets, a value behind a colon, marks and emoji do not count.
    """
    return normal_key(title.partition(":")[0])
