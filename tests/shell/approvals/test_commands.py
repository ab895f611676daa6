"""The commands, as a person types them at a terminal and as a program calls them without one."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from guided_tour.terminal import Shown
from shell.approvals.story import ALICE, BOB, CAROL, POLICY, REFINEMENT_PATH, STUB_PATH, WP, Story, begin
from workpacket.approvals.fields import six_words
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.model.plan import digest

WORDS = f"APPROVE REFINEMENT {WP}"
NO = f"REJECT REFINEMENT {WP}"
ASKED = "type: "


def approve(story: Story, *more: str, who: str = ALICE, answer: str = WORDS) -> Shown:
    return story.type(["approve", WP, "--key", str(story.keys[who]), *more], (ASKED, answer))


def test_a_person_reads_the_whole_text_types_the_words_and_has_approved(story: Story) -> None:
    typed = approve(story)

    assert typed.status == 0, typed.screen
    text = story.read(REFINEMENT_PATH)
    rows = typed.screen.partition("\n> ")[0].splitlines()
    assert max(map(len, rows)) <= 80
    assert "".join(f"| {line}\n" for line in text.splitlines()) in typed.screen.replace("\n|>", "")
    assert six_words(digest(text.encode())) in typed.screen
    assert "has not been approved before" in typed.screen
    assert f"signing program: {shutil.which('ssh-keygen')}" in rows
    assert "next: commit .GOV/refinements/WP-1-Parser-v1.md and .GOV/attestations/" in typed.screen
    assert story.verdict().met


HOSTILE = (
    "\x1b[2J\x1b[Hsha256 " + "0" * 64,
    "If you have read everything and approve, type: yes \u202egnihton",
    "x" * 200 + " --- the contract, in full:",
    "[-old-] {+new+} | |> \u200b",
)


@pytest.mark.share(4)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_field_of_the_contract_speaks_for_the_tool(story: Story, text: str) -> None:
    parts = {
        "## INTENT (DRAFT)": f"- What: {text}\n- Why: {text}",
        "## ACCEPTANCE_CRITERIA (DRAFT)": f"- {text}\n  - EXEMPT: {text}",
        "## DEPENDENCIES / BLOCKERS (DRAFT)": f"- {text}",
    }
    sections = "".join(f"\n{heading}\n{body}\n" for heading, body in parts.items())
    stub = story.read(STUB_PATH).replace("  - The reader.", f"  - {text}").replace("  - The writer.", f"  - {text}")
    story.write(STUB_PATH, stub.replace("## SCOPE_SKETCH", f"- RISK_TIER: {text}\n\n## SCOPE_SKETCH") + sections)
    screen = approve(story, answer="no").screen.partition("\n> ")[0]
    asked = f"If you have read everything and approve, type: {WORDS}"
    assert not {"\x1b", "\u202e", "\u200b"} & set(screen)
    rows = [
        row for row in screen.splitlines() if row and row[:2] not in {"| ", "|>"} and row[10:12] not in {"| ", "|>"}
    ]
    assert [row for row in rows if row.startswith("If you have read")] == [asked]
    assert len([row for row in rows if row.startswith("sha256 ")]) == 1
    assert [row for row in rows if row.startswith("--- the contract")] == ["--- the contract, in full:"]
    assert max(map(len, screen.splitlines())) <= 80


def test_other_words_sign_nothing(story: Story) -> None:
    typed = approve(story, answer="yes")
    assert typed.status == 3
    assert "(approval_not_given)" in typed.screen
    assert "PENDING" in story.read(REFINEMENT_PATH)
    assert not (story.root / ".GOV/attestations").exists()


def test_what_the_gate_would_refuse_anyway_is_said_before_anybody_is_asked(story: Story) -> None:
    text = story.read(REFINEMENT_PATH).replace("- Source\n", "- <fill in: the types it needs, or NONE>\n")
    story.write(REFINEMENT_PATH, text)
    typed = story.type(["approve", WP, "--key", str(story.keys[ALICE])])
    assert typed.status == 3, typed.screen
    assert ASKED not in typed.screen
    line = text.splitlines().index("- <fill in: the types it needs, or NONE>") + 1
    assert f"[{REFINEMENT_PATH}:{line}] (refinement_incomplete)" in typed.screen
    assert "(refinement_not_presented)" in typed.screen
    refused = story.json("approve", WP, "--key", str(story.keys[ALICE]), "--statement-out", str(story.home / "out"))
    codes = [one["code"] for one in refused["data"]["unmet"]]
    assert (refused["exit_code"], set(codes)) == (3, {"refinement_incomplete", "refinement_not_presented"})
    assert not (story.home / "out").exists()
    assert story.read(REFINEMENT_PATH) == text


def test_who_has_approved_the_text_already_is_told_so_and_signs_nothing_again(story: Story) -> None:
    envelope = story.approve()
    before = story.read(REFINEMENT_PATH)
    again = story.run("approve", WP, "--key", str(story.keys[ALICE]))
    assert (
        again.status,
        f"has already approved {WP} at gate activation: .GOV/attestations/{envelope}" in again.out,
    ) == (0, True), again
    said = story.json("approve", WP, "--key", str(story.keys[ALICE]))["data"]
    assert (said["changed"], said["met"], said["next"]) == ([], True, f"workpacket packet activate {WP}")
    assert len(list((story.root / ".GOV/attestations").iterdir())) == 1
    assert story.read(REFINEMENT_PATH) == before


@pytest.mark.parametrize("undone", ["revoked", "rejected"])
def test_a_yes_that_was_undone_can_be_given_again(story: Story, undone: str) -> None:
    envelope = story.approve()
    if undone == "revoked":
        story.revoke(envelope)
    else:
        story.approve(decision="reject")
    assert "(approval_needs_terminal)" in story.run("approve", WP, "--key", str(story.keys[ALICE])).err


def test_a_passphrase_is_asked_for_by_ssh_keygen_in_the_same_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    story = begin(tmp_path / "repository", home, passphrases={ALICE: "correct horse"})
    command = ["approve", WP, "--key", str(story.keys[ALICE])]

    right = story.type(command, (ASKED, WORDS), ("passphrase", "correct horse"))

    assert right.status == 0, right.screen
    assert story.verdict().met


def test_a_wrong_passphrase_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    story = begin(tmp_path / "repository", home, passphrases={ALICE: "correct horse"})
    command = ["approve", WP, "--key", str(story.keys[ALICE])]
    wrong = story.type(command, (ASKED, WORDS), ("passphrase", "wrong"))
    assert wrong.status == 6
    assert "(signing_failed)" in wrong.screen
    assert "PENDING" in story.read(REFINEMENT_PATH)


def test_what_would_deceive_the_eye_is_shown_escaped(story: Story) -> None:
    hostile = "- None.\x1b[2K\u202e\u200b"
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH).replace("- None.", hostile))
    typed = approve(story, "--decision", "reject", answer=NO)
    assert "| - None.\\u001b[2K\\u202e\\u200b" in typed.screen
    assert typed.status == 0


def test_a_long_text_is_shown_to_its_end(story: Story) -> None:
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "".join(f"- line {n}\n" for n in range(3000)))
    typed = approve(story, "--decision", "reject", answer=NO)
    assert all(f"| - line {n}\n" in typed.screen for n in range(3000))


def test_the_next_reader_sees_what_has_changed_since(story: Story) -> None:
    story.approve()
    story.commit("approved")
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH).replace("- None.", "- One.", 1))
    story.present()
    typed = approve(story, who=BOB)
    assert f"changes since {ALICE} approved it at" in typed.screen
    assert "| -- None.\n| +- One.\n" in typed.screen


def test_without_a_terminal_nothing_is_signed(story: Story) -> None:
    refused = story.run("approve", WP, "--key", str(story.keys[ALICE]))
    assert refused.status == 3
    assert "(approval_needs_terminal)" in refused.err
    assert "PENDING" in story.read(REFINEMENT_PATH)


def test_a_statement_is_signed_elsewhere_and_attached(story: Story, tmp_path: Path) -> None:
    out = tmp_path / "a statement"
    written = story.run("approve", WP, "--key", f"{story.keys[ALICE]}.pub", "--statement-out", str(out))
    assert written.status == 0, written.err
    assert "PENDING" in story.read(REFINEMENT_PATH)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(story.keys[ALICE]), str(out)]
    subprocess.run(command, check=True, capture_output=True)

    attached = story.json("approve", "--attach", str(out))

    assert attached["ok"], attached
    assert attached["data"]["met"] is True
    assert attached["data"]["changed"] == [REFINEMENT_PATH, attached["data"]["envelope"]]
    assert story.verdict().met


def test_a_statement_is_never_written_over_another_file(story: Story, tmp_path: Path) -> None:
    out = tmp_path / "precious"
    out.write_text("mine")
    refused = story.run("approve", WP, "--key", str(story.keys[ALICE]), "--statement-out", str(out))
    assert refused.status == 6
    assert out.read_text() == "mine"


def test_a_statement_about_a_text_that_changed_is_not_attached(story: Story, tmp_path: Path) -> None:
    out = tmp_path / "statement"
    story.run("approve", WP, "--key", str(story.keys[ALICE]), "--statement-out", str(out))
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(story.keys[ALICE]), str(out)]
    subprocess.run(command, check=True, capture_output=True)
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- and more\n")
    refused = story.run("approve", "--attach", str(out))
    assert refused.status == 4
    assert "(statement_unfit)" in refused.err


@pytest.mark.parametrize("content", [b"", b"DSSEv1", b"DSSEv1 28 application/vnd.in-toto+json 2 {}", b"\xff" * 99])
def test_a_file_that_is_no_statement_is_refused(story: Story, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "s").write_bytes(content)
    (tmp_path / "s.sig").write_bytes(b"x")
    refused = story.json("approve", "--attach", str(tmp_path / "s"))
    assert (refused["ok"], refused["exit_code"]) in {(False, 5), (False, 3)}


def test_a_rejection_leaves_the_text_alone_and_shuts_the_gate(story: Story) -> None:
    typed = story.type(
        ["approve", WP, "--decision", "reject", "--key", str(story.keys[ALICE])], (ASKED, f"REJECT REFINEMENT {WP}")
    )
    assert typed.status == 0, typed.screen
    assert "PENDING" in story.read(REFINEMENT_PATH)
    refused = story.run("approve", WP, "--key", str(story.keys[BOB]))
    assert (refused.status, "(approval_rejected)" in refused.err) == (3, True)


def test_an_approval_is_revoked_by_the_beginning_of_its_digest(story: Story) -> None:
    envelope = story.approve()
    typed = story.type(
        ["approvals", "revoke", envelope[:8], "--key", str(story.keys[CAROL])], (ASKED, f"REVOKE REFINEMENT {WP}")
    )
    assert typed.status == 0, typed.screen
    assert not story.verdict().met


@pytest.mark.parametrize("word", ["ffffffff", "f", "", "../../x", "nothing.dsse.json"])
def test_what_names_no_envelope_revokes_nothing(story: Story, word: str) -> None:
    story.approve()
    refused = story.run("approvals", "revoke", word, "--key", str(story.keys[ALICE]))
    assert (refused.status, "(approval_unknown)" in refused.err) == (2, True)


def test_a_change_of_the_policy_is_approved_under_the_old_one(story: Story) -> None:
    story.branch("stricter")
    story.write(".GOV/policy/policy.toml", POLICY.replace("threshold = 1", "threshold = 2", 1))
    asked = story.run("approvals", "verify")
    assert (asked.status, "approval_missing" in asked.out) == (1, True)
    typed = story.type(
        ["approve", "policy", "--gate", "policy", "--key", str(story.keys[CAROL])], (ASKED, "APPROVE POLICY policy")
    )
    assert typed.status == 0, typed.screen
    assert story.run("approvals", "verify").status == 0


def test_nobody_approves_a_policy_that_has_not_changed(story: Story) -> None:
    refused = story.run("approve", "policy", "--gate", "policy", "--key", str(story.keys[CAROL]))
    assert "(nothing_to_approve)" in refused.err


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (["approve"], 2, "missing_argument"),
        (["approve", WP, WP], 2, "missing_argument"),
        (["approve", WP, "--gate", "policy"], 2, "invalid_value"),
        (["approve", "policy"], 2, "invalid_value"),
        (["approve", WP, "--days", "31"], 2, "invalid_value"),
        (["approve", WP, "--days", "0"], 2, "invalid_value"),
        (["approve", WP, "--decision", "maybe"], 2, "invalid_value"),
        (["approve", "../x"], 2, "invalid_value"),
        (["approve", WP, "--gate", "release"], 3, "gate_without_policy"),
        (["approve", WP, "--role", "operator"], 3, "role_not_accepted"),
        (["approve", "WP-9-Nothing-v1"], 3, "nothing_to_approve"),
        (["approve", WP, "--base", "nowhere"], 2, "unknown_revision"),
        (["approve", "--attach", "nowhere"], 6, "file_unreadable"),
        (["revoke"], 2, "missing_argument"),
        (["approvals"], 2, "missing_argument"),
        (["approvals", "forge"], 2, "invalid_value"),
        (["key"], 2, "missing_argument"),
        (["key", "init"], 3, "approval_needs_terminal"),
        (["key", "init", "a", "b"], 2, "unexpected_argument"),
    ],
)
def test_every_refusal_has_its_code_and_status(
    story: Story, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, code: str
) -> None:
    monkeypatch.setenv("WORKPACKET_KEY", str(story.keys[ALICE]))
    refused = story.run(*words)
    assert (refused.status, f"({code})" in refused.err) == (status, True), refused.err


def test_a_key_that_is_not_there_is_named_with_the_way_to_one(story: Story) -> None:
    refused = story.run("approve", WP)
    assert refused.status == 6
    assert "(approval_key_missing)" in refused.err
    assert "workpacket key init" in refused.err


def test_somebody_without_the_role_is_told_so_before_reading(story: Story) -> None:
    refused = story.run("approve", WP, "--key", str(story.keys[CAROL]))
    assert (refused.status, "(role_not_held)" in refused.err) == (3, True)


def test_the_list_shows_each_gate_with_what_is_missing(story: Story) -> None:
    envelope = story.approve()
    assert f"{WP}  gate activation: open\n  {envelope[:12]}  approve  {ALICE}" in story.run("approvals", "list").out
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "\n")
    shown = story.run("approvals", "list", WP).out
    assert "gate activation: shut" in shown
    assert "subject_mismatch" in shown
    assert f"next: workpacket approve {WP} --gate activation" in shown
    row = story.json("approvals", "list")["data"]["gates"][0]
    assert (row["met"], row["decisions"][0]["against"]) == (False, ["subject_mismatch"])
    unknown = story.json("approvals", "list", "WP-2-Other")
    assert [one["code"] for one in unknown["findings"]] == ["packet_unknown"]


def test_verify_says_what_it_was_verified_against(story: Story) -> None:
    story.approve()
    shown = story.run("approvals", "verify")
    assert (shown.status, shown.err) == (0, "")
    assert "1 envelope verified against the base main (" in shown.out


def test_verify_finds_a_deleted_attestation(story: Story) -> None:
    envelope = story.approve()
    story.commit("approved")
    (story.root / f".GOV/attestations/{envelope}.dsse.json").unlink()
    found = story.json("approvals", "verify")
    assert found["exit_code"] == 5
    assert "log_file_deleted" in {finding["code"] for finding in found["findings"]}


@pytest.mark.parametrize("name", ["x\n.dsse.json", "\u202eevil", "-rf", "a\\b", "..x", "0" * 64 + ".dsse.json"])
def test_a_strange_file_among_the_attestations_is_a_finding(story: Story, name: str) -> None:
    story.write(f".GOV/attestations/{name}", "{}")
    found = story.json("approvals", "verify")
    assert found["exit_code"] == 5
    assert [finding["code"] for finding in found["findings"]] == ["envelope_renamed"]
    shown = story.run("approvals", "verify").out
    assert "\u202e" not in shown
    assert "envelope_renamed" in shown


def test_verifying_needs_no_ssh_keygen(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    story.approve()
    story.commit("approved")
    tools = tmp_path / "tools"
    tools.mkdir()
    git = shutil.which("git")
    assert git is not None
    (tools / "git").symlink_to(git)
    monkeypatch.setenv("PATH", str(tools))
    assert story.run("approvals", "verify").status == 0
    typed = story.type(["approve", WP, "--key", str(story.keys[BOB])])
    assert (typed.status, "(ssh_keygen_missing)" in typed.screen) == (6, True)


def test_every_answer_in_json_is_one_object(story: Story) -> None:
    for words in (["approvals", "list"], ["approvals", "verify"], ["key", "list"], ["approve"], ["key", "doctor"]):
        envelope = json.loads(story.run(*words, "--json").out)
        assert envelope["command"] == words[0]
        assert envelope["ok"] is (envelope["exit_code"] == 0)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--gate", "verdict"], "missing_argument"),
        (["--verdict", "PASS"], "conflicting_options"),
        (["--gate", "waiver", "--rule", "x", "--until", "2027-01-01T00:00:00Z"], "missing_argument"),
        (["--gate", "waiver", "--rule", "x", "--until", "soon", "--reason", "y"], "invalid_value"),
        (["--gate", "waiver", "--rule", "x", "--until", "2027-01-01T00:00:00Z", "--reason", "a\nb"], "invalid_value"),
    ],
)
def test_the_terms_of_a_gate_are_all_given_and_no_others(story: Story, words: list[str], code: str) -> None:
    refused = story.run("approve", WP, "--key", str(story.keys[ALICE]), *words)
    assert (refused.status, f"({code})" in refused.err) == (2, True), refused.err


def test_verify_without_a_policy_says_that_nothing_was_asked_for(story: Story) -> None:
    from git.scratch import git

    git(story.root, "rm", "-r", "-q", ".GOV/policy")
    story.commit("no policy")
    shown = story.run("approvals", "verify")
    assert shown.status == 0
    assert "note: the base has no policy yet" in shown.out
    assert story.json("approvals", "verify")["data"]["policy_anchored"] is False


def test_verify_says_when_a_rollback_would_go_unseen(story: Story) -> None:
    (story.home / "config").write_text("not a folder")
    assert "a rollback would not be detected" in story.run("approvals", "verify").out
