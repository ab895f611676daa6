"""`trace PATH:LINE`: who wrote a line, for which packet, who approved and judged it, and which tools were used."""

from __future__ import annotations

from typing import Any

from audit.audited import DONE, WORKED, Audited


def row(audited: Audited, path: str, line: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = audited.json("trace", f"{path}:{line}")["data"]
    return found


def test_a_line_leads_to_packet_contract_approver_and_judge_by_the_log(audited: Audited) -> None:
    found = row(audited, "src/greet.py")
    (packet,) = found["written_for"]
    assert (packet["packet"], packet["how"], packet["lane"]) == (DONE, "log", "VALIDATED")
    assert packet["verdicts"] == ["PASS by validator"]
    assert (packet["coder"], packet["harness"], packet["model"]) == ("coder", "", "")
    assert len(packet["contract"]) == 64
    assert found["assistants"] == []
    said = audited.done("trace", "src/greet.py:1").out
    assert f"packet      {DONE} VALIDATED (by log)" in said
    assert "with      undeclared, model undeclared" in said
    assert "assistants  undeclared" in said


def test_a_squash_keeps_the_trailers_and_a_line_is_traced_by_them(audited: Audited) -> None:
    audited.git("switch", "--quiet", "--create", "squashed")
    audited.write("src/ciao.py", "ciao = 1\n")
    lines = f"Work-Packet: {WORKED}\nAssisted-by: Codex:gpt-5-4\nWork-Packet: WP-1-Nothing-v1"
    audited.commit(f"Say ciao (#12)\n\n* One\n\n{lines}\n\n* Two")
    found = row(audited, "src/ciao.py")
    assert found["assistants"] == ["Codex:gpt-5-4"]
    assert [(each["packet"], each["how"], each["lane"]) for each in found["written_for"]] == [
        (WORKED, "trailer", "IN_PROGRESS"),
        ("WP-1-Nothing-v1", "trailer", ""),
    ]
    said = audited.done("trace", "src/ciao.py:1").out
    assert "WP-1-Nothing-v1  (by trailer), which has no log here" in said
    assert "assistants  Codex:gpt-5-4 (according to the commit)" in said


def test_what_nothing_says_is_undeclared(audited: Audited) -> None:
    audited.write("src/new.py", "x = 1\n")
    audited.git("add", "src/new.py")
    assert row(audited, "src/new.py")["commit"] == ""
    assert "is not committed" in audited.done("trace", "src/new.py:1").out
    audited.commit("By hand")
    assert row(audited, "src/new.py")["written_for"] == []
    assert "packet      undeclared" in audited.done("trace", "src/new.py:1").out
    assert audited("trace", "src/new.py:9").codes == ["path_not_found"]
    assert audited("trace", "none.py:1").codes == ["path_not_found"]
