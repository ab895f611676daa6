"""`workpacket audit justfile`: find parameters that a justfile pastes into a command line.

just replaces `{{ name }}` before the shell reads the line, so an argument that contains a quote or a `$(...)` is
executed. Passed as `"$@"` or `"$1"` (with `positional-arguments`), or through `quote(name)`, it stays a plain argument.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from workpacket.cli.options import Arguments, Command
from workpacket.errors import WorkpacketError
from workpacket.lazy_pattern import lazy_pattern
from workpacket.model import exits
from workpacket.problem import Location, Problem
from workpacket.report.escape import escape
from workpacket.report.json_report import render_envelope
from workpacket.text.source import MARKDOWN, Source

CODE = "just_parameter_pasted"

_DEFAULT = r"=(?:'[^']*'|\"[^\"]*\"|[^\s:'\"]+)"
_HEADER = lazy_pattern(rf"@?(?P<name>[A-Za-z_][\w-]*)(?P<parameters>(?:[ \t]+[^\s:='\"]+(?:{_DEFAULT})?)*)[ \t]*:(?!=)")
_PARAMETER = lazy_pattern(rf"[*+$]*(?P<name>[A-Za-z_][\w-]*)(?:{_DEFAULT})?")
# Four braces represent two literal ones.
_PASTED = lazy_pattern(r"\{\{\{\{|\{\{(?P<expression>.*?)\}\}")
_WORD = lazy_pattern(r"[A-Za-z_][\w-]*")
_QUOTED = lazy_pattern(r"\bquote\([^()]*\)")


def pasted_parameters(source: Source) -> Iterator[Problem]:
    """Yield each place where a recipe pastes one of its parameters."""
    parameters: dict[str, str] = {}
    for number in range(1, source.line_count + 1):
        line = source.line(number)
        start = source.line_starts[number - 1]
        if line[:1] in {" ", "\t"} or not line.strip():
            yield from _in_body(line, start, parameters)
            continue
        match = _HEADER.match(line)
        if match is not None:
            parameters = {name["name"]: match["name"] for name in _PARAMETER.finditer(match["parameters"])}
        elif not line.startswith(("[", "#")):
            parameters = {}


def _in_body(line: str, start: int, parameters: dict[str, str]) -> Iterator[Problem]:
    for match in _PASTED.finditer(line):
        named = set(_WORD.findall(_QUOTED.sub("", match["expression"] or "")))
        for name in sorted(named & parameters.keys()):
            message = f"the recipe {parameters[name]} pastes its parameter {name} into a command line"
            hint = 'set positional-arguments, and pass it on as "$@" or "$1"; or write {{ quote(' + name + ") }}"
            yield Problem(CODE, message, Location.span(start + match.start(), start + match.end()), hint)


def run(arguments: Arguments) -> int:
    findings = []
    for path in arguments.words or ["justfile"]:
        source = _read(path)
        findings += [source.placed(found) for found in pasted_parameters(source)]
    status = exits.FINDINGS if findings else exits.OK
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("lint-justfile", status, findings, {}))
        return status
    for one in findings:
        print(f"{escape(one.path)}:{one.line}:{one.column}: {escape(one.message)} ({one.code})")
        print(f"  help: {escape(one.hint)}")
    print(f"{len(findings)} parameters are pasted")
    print(f"next: {'workpacket explain just_parameter_pasted' if findings else 'just --list'}")
    return status


def _read(path: str) -> Source:
    try:
        with open(path, "rb") as stream:
            data = stream.read(MARKDOWN.size + 1)
    except OSError as error:
        raise WorkpacketError("path_not_found", f"{path} cannot be read: {error.strerror}") from error
    if len(data) > MARKDOWN.size:
        raise WorkpacketError("limit_size", f"{path} is larger than {MARKDOWN.size:,} bytes")
    return Source.from_bytes(path.replace(os.sep, "/"), data)


COMMAND = Command(
    "lint-justfile",
    run,
    arguments="[FILE...]",
    description="Without a file, checks the justfile in the current directory.",
    examples=("workpacket audit justfile", "workpacket audit justfile .GOV/gov.just"),
)
