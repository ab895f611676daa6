"""The event stream of PyYAML, made the same with and without libyaml.

Events come one at a time, so that the caller can stop at the first bracket too deep: libyaml and PyYAML compose trees
by recursion, and 30,000 opening brackets end the process there. Neither scanner looks ahead by more than a line.

libyaml reads YAML 1.1, and so does PyYAML's own parser, with other gaps. `yaml_portable` refuses what the two read
differently from each other or from YAML 1.2; only the question mark is healed instead. Inside brackets PyYAML takes
any `?` for the start of a key, so that `[what?]` fails in one parser and `[?x]` is misread by both. A `?` that YAML 1.2
takes for text is therefore shown to them as U+10FFFF, a code point that Unicode reserves for the inside of programs
and that no document may hold. And a text without a final line end gets one, without which a block scalar at the end of
the file has another value in PyYAML than elsewhere.

This module imports `yaml`, which costs more than reading a file with it; `yaml_strict` imports it when there is a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from workpacket.lazy_pattern import lazy_pattern

Event: TypeAlias = Any
"""An event of PyYAML: its stubs call the marks optional, and no parser leaves them out."""

STAND_IN = "\U0010ffff"
_TEXTUAL_QUESTION_MARK = lazy_pattern(r"\?(?:(?<=[^\s,\[\]{}]\?)|(?=[^\s,\[\]{}]))")

LOADER = yaml.CBaseLoader if yaml.__with_libyaml__ else yaml.BaseLoader


class NotYaml(Exception):
    """The text stops being YAML at offset `at`, in something that began at `since`."""

    def __init__(self, problem: str, at: int, since: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.at = at
        self.since = since


def events(text: str) -> Iterator[Event]:
    """The events of `text`, in which `STAND_IN` may stand for a question mark; `NotYaml` where it is none.

    What stands last, a block scalar or nothing, may end one beyond the end of `text`.
    """
    final = "" if text.endswith(("\n", "\r")) else "\n"
    shown = _TEXTUAL_QUESTION_MARK.sub(STAND_IN, text) if "?" in text else text
    parser = LOADER(shown + final)
    try:
        while parser.check_event():
            yield parser.get_event()
    except yaml.MarkedYAMLError as error:
        at = len(text) if error.problem_mark is None else min(error.problem_mark.index, len(text))
        since = at if error.context_mark is None else min(error.context_mark.index, at)
        raise NotYaml(error.problem or "", at, since) from None
    except (ValueError, OverflowError):
        # PyYAML's own parser asks `chr` for whatever an escape says; libyaml refuses it as we do here.
        at = parser.get_mark().index if isinstance(parser, yaml.BaseLoader) else 0
        raise NotYaml("found invalid Unicode character escape code", at, at) from None
    finally:
        parser.dispose()


def restored(value: str) -> str:
    """`value` with its question marks."""
    return value.replace(STAND_IN, "?") if STAND_IN in value else value
