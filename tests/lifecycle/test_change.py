"""`check` against the log, and `check --base`: what a hand edit, a forged event or a cut log cannot smuggle in."""

from __future__ import annotations

from lifecycle.governed import TOKENS_COUNT, Governed, forge, remembered
from lifecycle.world import packet_text
from workpacket.model.canonical import Json
from workpacket.model.plan import digest

NAME = "WP-1-Greeting-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
PACKET = f".GOV/task_packets/{NAME}.md"


@remembered
def activated(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")


def codes(governed: Governed, *words: str) -> set[str]:
    return {finding["code"] for finding in governed.json("check", *words)["findings"] if finding["severity"] == "error"}


def forged_move(governed: Governed, kind: str, lane: str, **data: Json) -> None:
    lanes: dict[str, Json] = {"lane_from": governed.state(NAME).lane, "lane_to": lane}
    forge(governed, NAME, kind, {**lanes, **data})


def test_a_status_changed_by_hand_is_drift(governed: Governed) -> None:
    activated(governed)
    governed.replace(PACKET, "**Status:** Ready for Dev", "**Status:** Validated")
    assert "status_drift" in codes(governed)
    governed.done("board", "sync")
    assert codes(governed) == set()


def test_an_entry_moved_by_hand_is_drift_until_it_is_drawn_anew_or_taken_over(governed: Governed) -> None:
    activated(governed)
    before = governed.read(BOARD)
    governed.replace(BOARD, "[READY_FOR_DEV]", "[BLOCKED] - no water")
    assert "board_drift" in codes(governed)
    governed.done("board", "sync")
    assert governed.read(BOARD) == before
    governed.replace(BOARD, "[READY_FOR_DEV]", "[BLOCKED] - no water")
    governed.done("board", "sync", "--adopt")
    assert governed.state(NAME).lane == "BLOCKED"
    assert codes(governed) == set()


def test_a_word_on_the_board_is_no_evidence(governed: Governed) -> None:
    activated(governed)
    governed.replace(BOARD, "[READY_FOR_DEV]", "[VALIDATED]")
    result = governed("board", "sync", "--adopt")
    assert (result.status, result.codes) == (3, ["wrong_lane"])
    assert governed.state(NAME).lane == "READY_FOR_DEV"


def test_what_the_output_rests_on_includes_the_log(governed: Governed) -> None:
    activated(governed)
    governed.done("check")
    event = next(iter((governed.root / ".GOV/log" / NAME).iterdir()))
    event.write_bytes(event.read_bytes().replace(b"ann", b"eve"))
    assert governed("check").status == 5


def test_a_move_with_its_gate_is_a_change_that_holds(governed: Governed) -> None:
    activated(governed)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    assert codes(governed, "--base", "main", "--uncommitted") == set()


def test_a_forged_move_is_seen(governed: Governed) -> None:
    activated(governed)
    forged_move(governed, "merged", "VALIDATED", commit="d" * 40, target="main", target_commit="d" * 40, proof="tree")
    governed.done("board", "sync")
    assert codes(governed) == set()
    assert codes(governed, "--base", "main", "--uncommitted") == {"move_illegal", "move_without_gate"}
    assert governed("check", "--base", "main").status == 5


def test_a_forged_activation_is_seen(governed: Governed) -> None:
    governed.begin(policy="")
    governed.stub(NAME)
    governed.commit("a stub")
    refinement: Json = {"path": f".GOV/refinements/{NAME}.md", "sha256": "a" * 64}
    forged_move(governed, "activated", "READY_FOR_DEV", refinement=refinement, checklist=[])
    assert "move_without_gate" in codes(governed, "--base", "main", "--uncommitted")
    # A policy that names nobody lets nobody through, and the check is asked although it says nothing of approvals.
    assert "[approvals" not in governed.read(".GOV/policy/policy.toml")
    assert "approvers_unnamed" in codes(governed)
    assert "approvers_unnamed" in codes(governed)


def test_a_policy_that_comes_with_the_change_does_not_judge_it(governed: Governed) -> None:
    governed.begin(policy="")
    governed.stub(NAME)
    governed.commit("a stub")
    governed.git("switch", "--quiet", "--create", "work")
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + TOKENS_COUNT)
    governed.commit("tokens count now")
    refinement: Json = {"path": f".GOV/refinements/{NAME}.md", "sha256": "a" * 64}
    forged_move(governed, "activated", "READY_FOR_DEV", refinement=refinement, checklist=[])
    assert "move_without_gate" in codes(governed, "--base", "main", "--uncommitted")


def test_severities_are_those_of_the_base(governed: Governed) -> None:
    activated(governed)
    governed.replace(PACKET, "TERMS: x", "TERMS: TODO")
    strict = codes(governed, "--base", "main", "--uncommitted")
    governed.replace(".GOV/policy/policy.toml", 'profile = "strict"', 'profile = "adopt"')
    # That the policy changes without an approval is a finding of its own.
    assert codes(governed, "--base", "main", "--uncommitted") - {"approval_missing"} == strict


def test_an_end_that_was_cut_off_shows_against_the_base(governed: Governed) -> None:
    activated(governed)
    last = governed.state(NAME).history[-1]
    (governed.root / last.path).unlink()
    assert "log_file_deleted" in codes(governed, "--base", "main", "--uncommitted")
    assert governed("log", "verify").status == 0
    assert governed("log", "verify", "--base", "main").status == 5


def test_a_packet_written_past_the_gate_is_seen(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    text = governed.read(PACKET)
    governed.stub("WP-1-Song-v1")
    governed.write(".GOV/task_packets/WP-1-Song-v1.md", text.replace("Greeting", "Song"))
    assert "packet_not_activated" in codes(governed)


def test_where_packets_have_logs_nobody_is_adopted_into_the_middle_of_the_work(governed: Governed) -> None:
    activated(governed)
    path = ".GOV/task_packets/WP-1-Song-v1.md"
    governed.write(path, governed.read(PACKET).replace("Greeting", "Song").replace("Ready for Dev", "Validated"))
    governed.done("adopt")
    assert governed.state("WP-1-Song-v1").lane == "VALIDATED"
    assert "move_illegal" in codes(governed, "--base", "main", "--uncommitted")


def test_the_first_adoption_of_all_is_a_change_that_holds(governed: Governed) -> None:
    governed.done("init")
    governed.write(PACKET, packet_text(NAME, "Validated").decode())
    governed.commit("before the log")
    governed.done("adopt")
    governed.done("board", "sync")
    assert not {code for code in codes(governed, "--base", "main", "--uncommitted") if code.startswith("move_")}


def test_a_fork_is_settled_among_the_lanes_that_it_is_about(governed: Governed) -> None:
    activated(governed)
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", NAME, "--as", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    moves: list[Json] = [*sorted(move.id for move in governed.state(NAME).latest_moves)]
    forged_move(governed, "fork.resolved", "VALIDATED", moves=moves, reason="because")
    assert governed.state(NAME).lane == "VALIDATED"
    assert "move_illegal" in codes(governed, "--base", "main", "--uncommitted")


def test_what_the_stub_demands_may_not_vanish_from_the_packet_later(governed: Governed) -> None:
    activated(governed)
    assert "scope_not_carried_over" not in codes(governed)
    governed.replace(PACKET, "It ends with a line feed.", "It ends.")
    # What was found of two texts is kept, and found again.
    for words in ((), (), ("--base", "main"), ("--no-cache",)):
        assert "scope_not_carried_over" in codes(governed, *words)
    # Files that are named are compared with nothing, unless a change is judged.
    stub = f".GOV/task_packets/stubs/{NAME}.md"
    for named in (PACKET, stub, ".GOV/task_packets"):
        assert "scope_not_carried_over" in codes(governed, named, "--base", "main", "--uncommitted")
    assert "scope_not_carried_over" not in codes(governed, PACKET)
    assert "scope_not_carried_over" not in codes(governed, ".GOV/refinements", "--base", "main", "--uncommitted")
    governed.commit("it is on the base, and no better for that")
    assert "scope_not_carried_over" in codes(governed)
    governed.replace(PACKET, "It ends.", "It ends with a line feed.")
    assert codes(governed) == set()


def test_a_claim_past_its_dependency_is_seen(governed: Governed) -> None:
    governed.begin()
    governed.activate("WP-1-Song-v1")
    governed.activate(NAME, depends="WP-1-Song-v1")
    governed.commit("activated")
    forged_move(
        governed, "claimed", "IN_PROGRESS", holder="eve", lease="1", expires_at="2026-03-09T00:00:00Z", branch="work"
    )
    found = [
        f["message"]
        for f in governed.json("check", "--base", "main", "--uncommitted")["findings"]
        if "without" in f["code"]
    ]
    assert [message for message in found if "was not done" in message]


def test_a_merge_that_never_was_is_seen(governed: Governed) -> None:
    activated(governed)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")
    state = governed.state(NAME)
    commit = next(event.text("commit") for event in state.history if event.type == "submitted")
    governed.git("switch", "--quiet", "main")
    governed.git("checkout", f"wp/{NAME}", "--", ".GOV", "report.md")
    assert codes(governed, "--base", "main", "--uncommitted") == set()
    told: dict[str, Json] = {"target": "main", "target_commit": "d" * 40, "proof": "tree"}
    forged_move(governed, "merged", "VALIDATED", commit=commit, **told)
    governed.done("board", "sync")
    found = governed.json("check", "--base", "main", "--uncommitted")["findings"]
    # The work that the verdict is about is not there, which coverage warns of.
    found = [one for one in found if one["severity"] == "error"]
    assert [(one["code"], "nor an equivalent change is in this history" in one["message"]) for one in found] == [
        ("move_without_gate", True)
    ]
    # With the work itself on the branch, the same event is one that nothing stands against.
    governed.git("checkout", f"wp/{NAME}", "--", "src")
    governed.commit("squashed")
    assert codes(governed, "--base", "main~1", "--uncommitted") == set()


def test_work_that_changes_no_other_file_is_merged_by_a_squash_too(governed: Governed) -> None:
    """There is nothing that the target could lack; in a clone without the commit, it was merged before."""
    activated(governed)
    governed.done("packet", "prepare", NAME, "--for", "coder")
    governed.done("claim", NAME, "--as", "coder")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.commit("claimed")
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
    governed.commit("squashed")
    governed.done("packet", "merged", NAME)
    governed.commit("merged")
    assert codes(governed, "--base", "main~1") == set()


def test_a_move_that_does_not_know_what_the_base_has_does_not_land(governed: Governed) -> None:
    """The same packet claimed on two branches: the first one lands, and no settlement makes the other one land."""
    activated(governed)
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", NAME, "--as", branch)
        governed.commit(branch)
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", "--message", "first", "one")
    governed.git("switch", "--quiet", "two")
    governed.git("merge", "--quiet", "--message", "second", "main")
    governed.done("packet", "resolve", NAME, "--lane", "IN_PROGRESS", "--reason", "because")
    assert "move_beside_base" in codes(governed, "--base", "main", "--uncommitted")
    governed.commit("settled")
    governed.git("restore", "--source=main", "--staged", "--worktree", ".GOV")
    governed.commit("taken back")
    governed.done("block", NAME, "--reason", "x", "--until", "y")
    assert not {code for code in codes(governed, "--base", "main", "--uncommitted") if code.startswith("move_")}


def test_a_box_without_a_tick_is_no_yes(governed: Governed) -> None:
    """Nor is a point that says FAIL; neither the verdict below the boxes nor an event answers for them."""
    governed.begin(policy="")
    governed.stub(NAME)
    governed.refine(NAME)
    path = f".GOV/refinements/{NAME}.md"
    for word in ("[ ] PASS", "[  ] pass", "[x] FAIL", "No", "[]"):
        governed.replace(path, "Specific: [x] PASS", f"Specific: {word}")
        governed.done("refine", NAME, "--present")
        assert "coverage_point_open" in governed.refused("create-task-packet", NAME)
        governed.replace(path, f"Specific: {word}", "Specific: [x] PASS")
    governed.done("refine", NAME, "--present")
    assert "coverage_point_open" not in governed.refused("create-task-packet", NAME)
    governed.commit("a refinement")
    governed.replace(path, "Specific: [x] PASS", "Specific: [ ] PASS")
    refinement: Json = {"path": path, "sha256": digest((governed.root / path).read_bytes())}
    forged_move(governed, "activated", "READY_FOR_DEV", refinement=refinement, checklist=[])
    found = governed.json("check", "--base", "main", "--uncommitted")["findings"]
    assert any("'Specific' is not met" in finding["message"] for finding in found)
