"""What commands and `check` say where the log is damaged, or a command died between files: no more than is known."""

from __future__ import annotations

import pytest

from lifecycle.governed import Governed
from shell.simulated_disk import Killed
from workpacket.shell.transactions import recovery

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"


def errors(governed: Governed) -> dict[str, set[str]]:
    """The codes of all errors that `check` finds, with the places where it finds them."""
    found: dict[str, set[str]] = {}
    for finding in governed.json("check")["findings"]:
        found.setdefault(finding["code"], set()).add(finding["path"])
    return found


def two_stubs(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.stub(OTHER)


def test_a_packet_whose_log_does_not_hold_together_is_compared_with_nothing_and_left_alone(governed: Governed) -> None:
    two_stubs(governed)
    governed.done("packet", "abandon", NAME, "--reason", "x")
    (begun,) = [event.path for event in governed.state(NAME).history if event.type == "created"]
    governed.replace(begun, '"ann"', '"bob"')
    board = governed.read(BOARD)
    found = errors(governed)
    assert found["event_edited"] == {begun}
    assert not found.keys() & {"board_drift", "status_drift", "registry_drift", "log_without_file"}
    # Somebody moves the other one by hand: that is drawn anew, and only that.
    governed.replace(BOARD, f"**[{OTHER}]** - [STUB]", f"**[{OTHER}]** - [FAIL]")
    said = governed.done("board", "sync").out
    assert f"{NAME} was left unchanged: its log is inconsistent" in said
    assert governed.read(BOARD) == board
    assert governed.refused("packet", "unblock", NAME) == ["log_unsound"]


def test_a_damaged_log_whose_packet_is_gone_as_well_is_told(governed: Governed) -> None:
    two_stubs(governed)
    (begun,) = [event.path for event in governed.state(NAME).history if event.type == "created"]
    governed.replace(begun, '"ann"', '"bob"')
    (governed.root / f".GOV/task_packets/stubs/{NAME}.md").unlink()
    assert errors(governed)["log_without_file"] == {f".GOV/log/{NAME}"}


def test_check_tells_of_a_command_that_died_between_files(governed: Governed, monkeypatch: pytest.MonkeyPatch) -> None:
    two_stubs(governed)
    assert errors(governed) == {}

    def die(*_words: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "roll", die)
        with pytest.raises(Killed):
            governed("packet", "abandon", NAME, "--reason", "x")
    # No document has changed yet; the output of the check before is not shown again.
    for _ in range(2):
        told = governed.json("check")
        (finding,) = [one for one in told["findings"] if one["code"] == "transaction_unfinished"]
        assert told["exit_code"] == 5
        assert "abandon was interrupted while writing" in finding["message"]
    governed.done("log", "recover", "--forward")
    assert errors(governed) == {}
    assert governed.state(NAME).lane == "ABANDONED"


def test_a_base_of_which_nothing_is_in_force_any_more_may_stand_in_the_registry(governed: Governed) -> None:
    two_stubs(governed)
    governed.done("packet", "supersede", NAME, "--by", OTHER)
    assert errors(governed) == {}
    governed.done("board", "sync")
    governed.done("board", "registry", "sync")
    assert errors(governed) == {}
