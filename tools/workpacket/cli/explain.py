"""`workpacket explain`: what a reason code means and what to do about it."""

from __future__ import annotations

import sys

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json
from workpacket.model.reasons import Reason
from workpacket.model.stops import StopReason
from workpacket.report.catalogue import catalogue
from workpacket.report.explain import facts_of, nearest_codes, render_codes_page, render_explanation
from workpacket.report.json_report import render_envelope


def run(arguments: Arguments) -> int:
    codes = catalogue()
    if arguments.flag("all"):
        every: list[Json] = [_as_json(reason) for reason in codes.values()]
        as_object = arguments.flag("json")
        sys.stdout.write(render_envelope("explain", 0, [], {"codes": every}) if as_object else render_codes_page(codes))
        return 0
    if len(arguments.words) != 1:
        raise usage(arguments.command, "missing_argument", "name one code")
    word = arguments.words[0]
    if word not in codes:
        near = nearest_codes(word, codes)
        hint = f"did you mean {' or '.join(near)}?" if near else "`workpacket explain --all` lists every code"
        raise WorkpacketError("unknown_code", f"there is no code {word!r}", hint=hint)
    reason = codes[word]
    if arguments.flag("json"):
        sys.stdout.write(render_envelope("explain", 0, [], _as_json(reason)))
        return 0
    from workpacket.cli.checking import style_of

    sys.stdout.write(render_explanation(reason, style_of(arguments)))
    return 0


def _as_json(reason: Reason) -> dict[str, Json]:
    words: dict[str, Json] = {
        "code": reason.code,
        "title": reason.title,
        "explanation": reason.explanation,
        "remedy": reason.remedy,
    }
    if isinstance(reason, StopReason):
        words |= {"diagnosis": reason.diagnosis, "remedies": list(reason.remedies)}
    return {**words, **dict(facts_of(reason))}


COMMAND = Command(
    "explain",
    "explain a reason code",
    run,
    arguments="[CODE]",
    options=(Option("all", "every code, as the reference page in Markdown"),),
    examples=("workpacket explain byte_order_mark", "workpacket explain --all > docs/reference/codes.md"),
)
