"""Several processes claim the same packets by the command: one holder each, nothing lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from git.scratch import commit, make_repository
from lifecycle.world import adopted
from workpacket.ledger.fold import fold
from workpacket.ledger.log import read_log
from workpacket.lifecycle.board_sync import sync
from workpacket.shell.transactions.recovery import unfinished

ROOT = Path(__file__).parents[2]
PROCESSES = 8

CLAIMER = """
import sys
from workpacket.cli.main import main
for number in range(int(sys.argv[2])):
    main(["claim", f"WP-1-P{number}-v1", "--as", sys.argv[1], "--branch", "work"])
"""


def claim_all(folder: Path, packets: int) -> None:
    repository = make_repository(folder)
    names = [f"WP-1-P{number}-v1" for number in range(packets)]
    world = adopted(dict.fromkeys(names, "READY_FOR_DEV"))
    world.do(sync)
    for path, data in world.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    commit(folder, "start")
    claimers = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, f"coder-{who}", str(packets)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT / "tools")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for who in range(PROCESSES)
    ]
    said = [claimer.communicate()[1].decode() for claimer in claimers]
    assert not any("internal_error" in words for words in said), said
    board = (folder / ".GOV/roles_shared/TASK_BOARD.md").read_text()
    for name in names:
        log = folder / ".GOV" / "log" / name
        state = fold(read_log(name, {path.name: path.read_bytes() for path in log.iterdir()}))
        assert (state.lane, state.findings, len(state.holders)) == ("IN_PROGRESS", (), 1)
        assert f"- **[{name}]** - [IN_PROGRESS]" in board
    assert unfinished(repository) == []


def test_every_packet_has_exactly_one_holder(tmp_path: Path) -> None:
    claim_all(tmp_path, 8)
