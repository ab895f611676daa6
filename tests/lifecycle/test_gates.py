"""Each gate names everything that is missing, with the command that supplies it, and changes no byte."""

from __future__ import annotations

import hashlib

import pytest

from lifecycle.governed import ANCHOR_LINE, GATE, ROADMAP_LINE, TOKENS_COUNT, Governed, forge
from workpacket.documents.spec_pointer import names_passage
from workpacket.model.canonical import Json
from workpacket.model.plan import Plan
from workpacket.shell.transactions.transaction import Transaction

NAME, OTHER = "WP-1-Greeting-v1", "WP-1-Song-v1"
REFINEMENT = f".GOV/refinements/{NAME}.md"
PACKET = f".GOV/task_packets/{NAME}.md"


def test_a_bare_stub_lacks_all_four_items_that_come_before_its_packet(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    assert governed.refused("create-task-packet", NAME) == [
        "refinement_missing",
        "refinement_not_presented",
        "user_signature_missing",
        "refinement_not_approved",
        "approval_missing",
    ]


def test_every_unmet_condition_names_what_supplies_it(governed: Governed) -> None:
    governed.begin(policy="")
    governed.stub(NAME)
    answer = governed.json("packet", "activate", NAME)
    assert (answer["ok"], answer["exit_code"]) == (False, 3)
    assert len(answer["data"]["unmet"]) == 5
    assert all(one["command"] and one["message"] for one in answer["data"]["unmet"])
    assert [one["code"] for one in answer["findings"]]


def test_a_token_is_no_signature_unless_the_policy_says_so_in_words(governed: Governed) -> None:
    governed.begin(policy="")
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    assert governed.refused("packet", "activate", NAME) == ["approvers_unnamed"]


def test_a_policy_that_only_lies_in_the_work_tree_lets_nobody_pass(governed: Governed) -> None:
    governed.begin(policy="")
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.write(".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + TOKENS_COUNT)
    assert governed.refused("packet", "activate", NAME) == ["approvers_unnamed"]


def test_before_the_first_commit_nobody_may_approve(governed: Governed) -> None:
    governed.done("init")
    governed.stub(NAME)
    assert "policy_unanchored" in governed.refused("packet", "activate", NAME)


def test_a_requirement_of_the_roadmap_is_none(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME, ROADMAP_LINE)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    assert governed.refused("packet", "activate", NAME) == ["requirement_only_in_roadmap"]


def test_a_ticked_box_proves_nothing(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.replace(f".GOV/task_packets/stubs/{NAME}.md", "- [ ]", "- [x]")
    assert len(governed.refused("packet", "activate", NAME)) == 5


@pytest.mark.parametrize(
    ("candidate", "anchor"), [("None known.", "<fill in>"), ("TODO", "<fill in>"), ("SPEC_v1.md 1.1", "SPEC_v1.md 1.1")]
)
def test_that_no_passage_is_known_is_not_put_up_for_a_signature_as_one(
    governed: Governed, candidate: str, anchor: str
) -> None:
    governed.begin()
    governed.done("new", NAME, "--what", "Greet", "--why", "It is asked for")
    governed.replace(
        f".GOV/task_packets/stubs/{NAME}.md", "not Roadmap):\n  - None known.", f"not Roadmap):\n  - {candidate}"
    )
    governed.done("refine", NAME)
    assert f"- SPEC_ANCHOR: {anchor}\n" in governed.read(REFINEMENT)


@pytest.mark.parametrize(
    "said", ["None known.", "Nothing of that kind.", "n/a", "TBD", "TODO: later", "none yet", "(unknown)", "-", "N.A."]
)
def test_an_anchor_that_names_no_passage_is_refused_as_one_that_is_missing(governed: Governed, said: str) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.replace(REFINEMENT, f"SPEC_ANCHOR: SPEC_v1.md line {ANCHOR_LINE}", f"SPEC_ANCHOR: {said}")
    assert set(governed.refused("refine", NAME, "--present")) == {"refinement_incomplete"}
    assert "refinement_incomplete" in governed.refused("packet", "activate", NAME)


@pytest.mark.parametrize("name", ["SPEC_v1.md 1.1", "4.2 None of the above", "Not-found page", "To be greeted", "A.1"])
def test_a_passage_may_be_called_what_it_likes(name: str) -> None:
    assert names_passage(name)


def test_an_open_point_is_named_with_its_line(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.replace(
        REFINEMENT, "### PRIMITIVES (traits/structs/enums)\n- Nothing", "### PRIMITIVES (x)\n- <fill in> N"
    )
    assert governed.refused("refine", NAME, "--present") == ["refinement_incomplete"]


def test_what_was_presented_is_what_is_approved(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.replace(REFINEMENT, "### GAPS_IDENTIFIED\n- Nothing", "### GAPS_IDENTIFIED\n- Everything, not nothing")
    assert governed.refused("packet", "activate", NAME) == ["refinement_not_presented"]


def test_a_specification_that_moved_on_is_seen(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.write(".GOV/spec/SPEC_v1.md", governed.read(".GOV/spec/SPEC_v1.md") + "\nMore.\n")
    assert set(governed.refused("packet", "activate", NAME)) == {"refinement_incomplete"}


def test_a_signature_needs_time_to_read(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.refine(NAME)
    governed.sign(NAME)
    governed.done("refine", NAME, "--present")
    assert governed.refused("packet", "activate", NAME) == ["approval_missing", "legacy_hasty"]


def test_a_token_is_used_once(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    token = next(line for line in governed.read(REFINEMENT).splitlines() if "USER_SIGNATURE" in line)
    governed.stub(OTHER)
    governed.refine(OTHER)
    governed.done("refine", OTHER, "--present")
    governed.sign(OTHER)
    path = f".GOV/refinements/{OTHER}.md"
    own = next(line for line in governed.read(path).splitlines() if "USER_SIGNATURE" in line)
    governed.replace(path, own, token)
    assert governed.refused("packet", "activate", OTHER) == ["approval_missing", "legacy_reused"]


def test_an_item_that_the_policy_adds_is_asked_for(governed: Governed) -> None:
    more = '\n[[lifecycle.checklist]]\nitem = "threat_model"\nsection = "THREAT_MODEL"\n'
    governed.begin(policy=more + TOKENS_COUNT)
    governed.stub(NAME)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    assert governed.refused("packet", "activate", NAME) == ["checklist_item_unmet"]


@pytest.mark.parametrize("command", [("prepare",), ("claim",), ("submit",), ("release", "--reason", "x")])
def test_nobody_starts_work_from_a_stub(governed: Governed, command: tuple[str, ...]) -> None:
    governed.begin()
    governed.stub(NAME)
    assert governed.refused(command[0], NAME, *command[1:]) == ["packet_is_stub"]


def test_a_dependency_must_be_done_before(governed: Governed) -> None:
    governed.begin()
    governed.activate(OTHER)
    governed.activate(NAME, depends=OTHER)
    governed.done("packet", "prepare", NAME)
    assert governed.refused("claim", NAME) == ["dependency_unmet"]
    assert OTHER in governed.done("next").out
    assert NAME not in governed.done("next").out


def test_nobody_waives_or_overrules_without_a_signature_of_that_gate(governed: Governed) -> None:
    governed.begin(policy=TOKENS_COUNT + GATE.replace("activation", "waiver"))
    governed.activate(NAME, depends=OTHER)
    governed.done("packet", "prepare", NAME)
    lifting = (NAME, "dependency_unknown_lane", "--until", "2026-12-31", "--reason", "it's elsewhere")
    assert governed.refused("packet", "override", *lifting) == ["gate_without_policy"]
    assert governed.refused("packet", "waive", *lifting) == ["approval_missing"]
    (unmet,) = governed.json("packet", "waive", *lifting)["data"]["unmet"]
    assert unmet["command"] == (
        f"workpacket approve {NAME} --gate waiver --rule dependency_unknown_lane --until 2026-12-31T23:59:59Z"
        " --reason 'it'\"'\"'s elsewhere'"
    )


def test_a_waiver_that_somebody_wrote_into_the_log_by_hand_lifts_nothing(governed: Governed) -> None:
    governed.begin(policy=TOKENS_COUNT + GATE.replace("activation", "waiver"))
    governed.activate(NAME, depends=OTHER)
    governed.done("packet", "prepare", NAME)
    told: dict[str, Json] = {"rule": "dependency_unknown_lane", "reason": "x", "expires_at": "2026-12-31T23:59:59Z"}
    forge(governed, NAME, "waived", told)
    assert governed.refused("claim", NAME) == ["dependency_unknown_lane"]
    assert "approval_missing" in {finding["code"] for finding in governed.json("check")["findings"]}


def test_work_does_not_go_to_the_branch_it_is_merged_into(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    assert governed.refused("claim", NAME) == ["work_branch_missing"]


def test_one_who_claims_wins(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "first", "--branch", "work")
    assert governed.refused("claim", NAME, "--as", "second", "--branch", "work") == ["claimed_by_other"]
    assert governed.refused("packet", "release", NAME, "--as", "second", "--reason", "x") == ["not_the_holder"]
    governed.done("claim", NAME, "--renew", "--as", "first")
    governed.clock.turn(days=4)
    assert governed.refused("claim", NAME, "--renew", "--as", "first") == ["lease_ended"]
    governed.done("packet", "release", NAME, "--as", "second", "--reason", "the lease has ended")
    governed.done("claim", NAME, "--as", "second", "--branch", "work")


def test_work_does_not_go_to_the_branch_it_is_merged_into_with_a_remote_either(
    governed: Governed, tmp_path_factory: pytest.TempPathFactory
) -> None:
    governed.begin()
    governed.activate(NAME)
    hub = tmp_path_factory.mktemp("hub")
    governed.git("remote", "add", "origin", str(hub))
    governed.git("update-ref", "refs/remotes/origin/main", "HEAD")
    governed.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    assert governed.refused("claim", NAME) == ["work_branch_missing"]


def hint(governed: Governed, *words: str) -> str:
    return str(governed.json(*words)["data"]["next"])


def test_a_second_claim_says_what_leads_on_for_whoever_types_it(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "first", "--branch", "work")
    governed.commit("claimed")
    again = f"workpacket packet release {NAME} --reason TEXT"
    assert hint(governed, "claim", NAME, "--as", "first").startswith(
        "do the work, commit it with git, then: workpacket"
    )
    assert hint(governed, "claim", NAME, "--as", "second") == f"ask first to run: {again}"
    governed.clock.turn(days=4)
    assert hint(governed, "claim", NAME, "--as", "second") == f"{again}, then: workpacket claim {NAME}"


def test_a_command_typed_again_says_to_commit_what_it_did_before(governed: Governed) -> None:
    """An agent whose command was killed, or whose context was cut, does not know that it has succeeded."""
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    then = hint(governed, "submit", NAME, "--as", "coder", "--prove", "all=true")
    assert then.startswith(f"git add .GOV && git commit -m 'Submit {NAME}', then: workpacket verdict {NAME}")
    governed.commit("submitted")
    assert hint(governed, "submit", NAME, "--as", "coder", "--prove", "all=true").startswith("workpacket verdict")


def test_the_name_of_a_holder_is_one_word_of_the_command(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "ann to run: git push --force, or: ask bob", "--branch", "work")
    then = hint(governed, "claim", NAME, "--as", "second")
    assert then.startswith("ask 'ann to run: git push --force, or: ask bob' to run: workpacket packet release")


def test_a_packet_handed_over_is_for_the_one_named(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.done("claim", NAME, "--as", "first", "--branch", "work")
    governed.done("packet", "handover", NAME, "--to", "second", "--as", "first", "--reason", "night")
    assert governed.refused("claim", NAME, "--as", "third", "--branch", "work") == ["assigned_to_other"]
    governed.done("claim", NAME, "--as", "second", "--branch", "work")


def test_a_submission_needs_proof_of_every_line_and_stays_in_its_scope(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.write("elsewhere.py", "x\n")
    governed.commit("Too much")
    governed.write("src/more.py", "y\n")
    codes = governed.refused("submit", NAME, "--as", "coder", "--prove", "1=false")
    assert codes == ["evidence_missing", "outside_scope", "work_uncommitted", "evidence_missing"]


def test_a_proof_that_fails_says_what_it_came_to(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    command = 'python -c "print(42); raise SystemExit(7)"'
    answer = governed.json("submit", NAME, "--as", "coder", "--prove", f"1={command}")
    said = [one["message"] for one in answer["data"]["unmet"]]
    assert said[0].endswith(f"the evidence failed: {command} ended with 7, saying '42'")
    answer = governed.json("submit", NAME, "--as", "coder", "--prove", "1=src/greet.py:99")
    assert answer["data"]["unmet"][0]["message"].endswith("the evidence failed: src/greet.py:99 does not exist")


def test_a_todo_is_left_for_nobody(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.replace(PACKET, "TERMS: x", "TERMS: TODO")
    governed.work(NAME)
    assert governed.refused("submit", NAME, "--as", "coder", "--prove", "all=true") == ["todo_left"]


def test_only_what_the_contract_exempts_may_be_left_unproved(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    prove = ("--prove", "1=true", "--not-applicable", "2=no line feed here")
    assert governed.refused("submit", NAME, "--as", "coder", *prove) == ["evidence_missing"]


def test_proofs_are_recorded_with_what_they_came_to(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    stub = f".GOV/task_packets/stubs/{NAME}.md"
    governed.replace(stub, "- It ends with a line feed.", "- It ends with a line feed.\n  - EXEMPT: seen by eye")
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    governed.sign(NAME)
    governed.done("create-task-packet", NAME)
    governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--record-only", "--prove", "1=echo well done")
    governed.done("submit", NAME, "--as", "coder", "--not-applicable", "2=no line feed here")
    rows = governed.state(NAME).evidence[-1].data["evidence"]
    assert isinstance(rows, list)
    first, second = rows
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    printed = hashlib.sha256(b"well done\n").hexdigest()
    assert (first["exit_code"], first["log_length"], first["log_sha256"]) == (0, 10, printed)
    assert first["commit"] == governed.git("rev-parse", "HEAD").strip()
    assert (second["result"], second["reason"]) == ("not_applicable", "no line feed here")


def submitted(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.work(NAME)
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.commit("submitted")


def test_nobody_judges_their_own_work_or_without_a_report(governed: Governed) -> None:
    submitted(governed)
    assert governed.refused("verdict", NAME, "PASS", "--as", "coder") == ["verdict_by_coder", "report_missing"]
    assert governed.refused("verdict", NAME, "CHANGES", "--as", "judge") == ["review_reference_missing"]


def test_changes_send_it_back_and_failing_ends_it(governed: Governed) -> None:
    submitted(governed)
    governed.done("verdict", NAME, "CHANGES", "--reference", "review#1", "--as", "judge")
    assert governed.state(NAME).lane == "IN_PROGRESS"
    governed.done("submit", NAME, "--as", "coder", "--prove", "all=true")
    governed.write("report.md", "Bad.\n")
    governed.done("verdict", NAME, "FAIL", "--report", "report.md", "--as", "judge")
    assert governed.state(NAME).lane == "FAIL"


@pytest.mark.parametrize("way", ["merge", "squash", "rebase"])
def test_what_was_merged_is_found_however_it_was_merged(governed: Governed, way: str) -> None:
    submitted(governed)
    governed.write("report.md", "Good.\n")
    governed.done("verdict", NAME, "PASS", "--report", "report.md", "--as", "judge")
    governed.commit("judged")
    assert governed.refused("merged", NAME) == ["not_contained"]
    branch = f"wp/{NAME}"
    governed.git("switch", "--quiet", "main")
    if way == "merge":
        governed.git("merge", "--quiet", "--no-ff", branch)
    elif way == "squash":
        governed.git("merge", "--quiet", "--squash", branch)
        governed.git("commit", "--quiet", "--message", "squashed")
    else:
        governed.write("unrelated.md", "On main meanwhile.\n")
        governed.commit("unrelated")
        governed.git("switch", "--quiet", branch)
        governed.git("rebase", "--quiet", "main")
        governed.git("switch", "--quiet", "main")
        governed.git("merge", "--quiet", "--ff-only", branch)
    governed.done("merged", NAME)
    proof = governed.state(NAME).history[-1].text("proof")
    assert proof == {"merge": "commit", "squash": "patch_id", "rebase": "patch_id"}[way]


def test_blocked_work_goes_on_where_it_stopped(governed: Governed) -> None:
    submitted(governed)
    governed.done("block", NAME, "--reason", "no\nwater", "--until", "rain")
    assert f"- **[{NAME}]** - [BLOCKED] - no water" in governed.read(".GOV/roles_shared/TASK_BOARD.md")
    governed.done("packet", "unblock", NAME)
    assert governed.state(NAME).lane == "IN_REVIEW"
    assert f"- **[{NAME}]** - [IN_REVIEW]\n" in governed.read(".GOV/roles_shared/TASK_BOARD.md")


def test_a_later_revision_takes_the_place_of_the_earlier_one(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.activate("WP-1-Greeting-v2")
    assert governed.state(NAME).lane == "SUPERSEDED"
    assert governed.state(NAME).superseded_by == "WP-1-Greeting-v2"
    packet = governed.read(".GOV/task_packets/WP-1-Greeting-v2.md")
    assert "2 of 2 requirements preserved word for word" in packet
    row = next(
        line for line in governed.read(".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md").splitlines() if "v2" in line
    )
    assert "active=WP-1-Greeting-v2" in row
    assert f"supersedes: {NAME}" in row
    governed.done("check", "--fail-on", "error")
    assert governed.refused("claim", NAME) == ["packet_superseded"]


@pytest.mark.parametrize("lane", ["STUB", "READY_FOR_DEV"])
def test_work_can_be_given_up(governed: Governed, lane: str) -> None:
    governed.begin()
    (governed.stub if lane == "STUB" else governed.activate)(NAME)
    governed.done("packet", "abandon", NAME, "--reason", "nobody needs it")
    assert governed.state(NAME).lane == "ABANDONED"
    governed.done("check", "--fail-on", "error")


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("why", "WP-1-Greting-v1"), 2, "packet_unknown"),
        (("why", "WP-1-Greeting"), 2, "packet_ambiguous"),
        (("why", "../../etc/passwd"), 2, "packet_unknown"),
        (("new", NAME), 3, "packet_exists"),
        (("new", NAME.lower()), 2, "invalid_value"),
        (("release", NAME), 2, "missing_argument"),
        (("verdict", NAME, "MAYBE"), 2, "invalid_value"),
        (("verdict", NAME, "PASS", "--report", "nowhere.md"), 2, "path_not_found"),
        (("waive", NAME, "no_such_code", "--reason", "x", "--until", "2026-12-31"), 2, "unknown_code"),
        (("supersede", NAME, "--by", NAME), 3, "successor_unfit"),
        (("resolve", NAME, "--lane", "STUB", "--reason", "x"), 3, "not_forked"),
        (("board", "move", NAME, "VALIDATED"), 3, "wrong_lane"),
        (("board", "move", NAME, "READY_FOR_DEV"), 3, "hand_edit_not_adoptable"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    governed: Governed, words: tuple[str, ...], status: int, code: str
) -> None:
    governed.begin()
    governed.stub(NAME)
    before = governed.files()
    result = governed(*words)
    assert (result.status, code in result.err) == (status, True), result
    assert governed.files() == before


def test_a_slip_of_the_fingers_is_answered_with_the_nearest_id(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    assert f"did you mean {NAME}?" in governed("why", "WP-1-Greting-v1").err


def test_during_a_merge_nothing_moves_but_board_and_registry_are_drawn(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.write(".git/MERGE_HEAD", "0" * 40 + "\n")
    result = governed("packet", "abandon", NAME, "--reason", "x")
    assert (result.status, "operation_in_progress" in result.err) == (4, True)
    governed.done("board", "sync")
    governed.done("board", "registry", "sync")


def test_a_clock_that_goes_backwards_stops_everything_that_writes(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.clock.turn(days=-1)
    before = governed.files()
    result = governed("packet", "abandon", NAME, "--reason", "x")
    assert (result.status, "clock_behind" in result.err, governed.files() == before) == (6, True, True)


def test_a_linked_folder_is_not_written_through(governed: Governed) -> None:
    governed.begin()
    elsewhere = governed.root / "elsewhere"
    (governed.root / ".GOV").rename(elsewhere)
    (governed.root / ".GOV").symlink_to(elsewhere)
    before = governed.files()
    result = governed("new", NAME)
    assert (result.status, "path_is_link" in result.err, governed.files() == before) == (6, True, True)


def test_nothing_is_built_upon_a_log_that_does_not_hold_together(governed: Governed) -> None:
    governed.begin()
    governed.stub(NAME)
    governed.write(f".GOV/log/{NAME}/notes.txt", "x\n")
    assert governed.refused("packet", "abandon", NAME, "--reason", "x") == ["log_unsound"]
    (governed.root / ".GOV" / "log" / NAME / "notes.txt").unlink()
    event = next((governed.root / ".GOV" / "log" / NAME).iterdir())
    event.write_bytes(event.read_bytes().replace(b"ann", b"eve"))
    assert governed.refused("packet", "abandon", NAME, "--reason", "x") == ["log_unsound"]


def test_a_file_that_an_editor_changes_in_between_stops_the_command(
    governed: Governed, monkeypatch: pytest.MonkeyPatch
) -> None:
    governed.begin()
    governed.stub(NAME)
    apply = Transaction.apply

    def edited_first(transaction: Transaction, plan: Plan) -> tuple[str, ...]:
        path = ".GOV/roles_shared/TASK_BOARD.md"
        governed.write(path, governed.read(path) + "\nA note.\n")
        return apply(transaction, plan)

    monkeypatch.setattr(Transaction, "apply", edited_first)
    result = governed("packet", "abandon", NAME, "--reason", "x")
    assert (result.status, "changed_meanwhile" in result.err) == (4, True)
    assert governed.state(NAME).lane == "STUB"


def _landed_by_others(governed: Governed, *paths: str) -> None:
    """Others land files while the work goes on, and the branch merges them."""
    governed.git("switch", "--quiet", "main")
    for path in paths:
        governed.write(path, "by others\n")
    governed.commit("By others")
    governed.git("switch", "--quiet", f"wp/{NAME}")
    governed.git("merge", "--quiet", "--no-edit", "main")


def test_what_others_landed_and_the_branch_merged_is_not_outside_its_scope(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    _landed_by_others(governed, "docs/other.md", "lib/other.py")
    refused = governed("submit", NAME, "--as", "coder")
    assert [code for code in refused.codes if code != "evidence_missing"] == []


def test_what_the_branch_makes_of_it_is_outside_its_scope(governed: Governed) -> None:
    governed.begin()
    governed.activate(NAME)
    governed.commit("activated")
    governed.work(NAME)
    _landed_by_others(governed, "docs/other.md", "lib/other.py")
    governed.write("lib/other.py", "by the coder\n")
    (governed.root / "docs/other.md").unlink()
    governed.commit("More than asked")
    refused = governed("submit", NAME, "--as", "coder")
    assert refused.codes.count("outside_scope") == 2
