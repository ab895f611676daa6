"""The part of `board show` that reads packets."""

from __future__ import annotations

from workpacket.cli.looked_at import everything, output
from workpacket.cli.looking import looking
from workpacket.cli.options import Arguments
from workpacket.cli.remembered import Output
from workpacket.cli.show import log_at
from workpacket.documents.register_text import entry_line
from workpacket.ledger.fold import fold
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.lanes import SECTIONS, lane_of_token
from workpacket.report.json_report import render_envelope


def compute(arguments: Arguments) -> Output:
    repository = looking()
    at = arguments.value("at")
    lanes = {
        name: fold(log_at(arguments, repository, packet.log, at)).lane if at else packet.lane
        for name, packet in sorted(everything(repository).packets.items())
    }
    if arguments.flag("json"):
        shown: dict[str, Json] = {name: lane for name, lane in lanes.items() if lane}
        return output(repository, render_envelope("board", exits.OK, [], {"lanes": shown}))
    lines = []
    for section in SECTIONS[1:]:
        lines.append(f"## {section.heading}")
        for name, token in lanes.items():
            lane = lane_of_token(token)
            if lane is not None and lane.section == section.key:
                lines.append(entry_line(name, token))
        lines.append("")
    return output(repository, "\n".join([*lines, "next: workpacket board sync"]) + "\n")
