"""Several processes claim the same packets at once: one holder each, nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from git.scratch import make_repository
from ledger.stories import Story
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log
from workpacket.shell.transactions.recovery import unfinished

ROOT = Path(__file__).parents[2]
PROCESSES = 8
PACKETS = 12

CLAIMER = """
import sys
from pathlib import Path
from workpacket.git.repository import find_repository
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log
from workpacket.model.events import Actor
from workpacket.model.plan import FileChange, Plan, digest, log_seen
from workpacket.shell.transactions.transaction import writing

root, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
repository = find_repository(root)
board = root / ".GOV" / "board.md"
for number in range(count):
    packet = f"WP-1-P{number}-v1"
    tx = f"0190a5de-ac96-774b-bcce-{int(who) * 1000 + number:012}"
    with writing(repository, "claim") as transaction:
        folder = root / ".GOV" / "log" / packet
        log = read_log(packet, {path.name: path.read_bytes() for path in folder.iterdir()})
        if fold(log).lane != "READY_FOR_DEV":
            continue
        writer = EventWriter(Actor(who, "agent"), "2026-01-01T00:00:00Z", tx, "test")
        data = {"lane_from": "READY_FOR_DEV", "lane_to": "IN_PROGRESS", "holder": who, "lease": tx,
                "expires_at": "2027-01-01T00:00:00Z"}
        event = next_event(writer, packet, NewLogEvent("claimed", data), after=[log.by_id[head] for head in log.heads])
        old = board.read_bytes()
        edit = FileChange(".GOV/board.md", digest(old), old + f"{packet} {who}\\n".encode())
        transaction.apply(Plan("claim", tx, (edit,), (event,), (log_seen(packet, log.events),)))
"""


def test_every_packet_has_exactly_one_holder(tmp_path: Path) -> None:
    repository = make_repository(tmp_path)
    (tmp_path / ".GOV").mkdir()
    (tmp_path / ".GOV" / "board.md").write_bytes(b"")
    packets = [f"WP-1-P{number}-v1" for number in range(PACKETS)]
    for packet in packets:
        story = Story(packet)
        story.tell("created", "activated")
        folder = tmp_path / ".GOV" / "log" / packet
        folder.mkdir(parents=True)
        for name, data in story.files().items():
            (folder / name).write_bytes(data)
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, str(tmp_path), str(who), str(PACKETS)],
            env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
        )
        for who in range(PROCESSES)
    ]
    assert [claimer.wait() for claimer in claimers] == [0] * PROCESSES

    listed = dict(line.split() for line in (tmp_path / ".GOV" / "board.md").read_text().splitlines())
    for packet in packets:
        folder = tmp_path / ".GOV" / "log" / packet
        state = fold(read_log(packet, {path.name: path.read_bytes() for path in folder.iterdir()}))
        assert state.findings == ()
        assert Counter(event.type for event in state.history)["claimed"] == 1
        assert state.lease is not None
        assert state.lease.holder == listed[packet]
    assert unfinished(repository) == []
