"""Attacks by somebody who writes in the work tree, in the clone's own settings and on a branch, but not on the base.

Each is tried at three doors: the verdict of the gate, `approvals verify` and `check`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from git.scratch import git
from proof.approvals.hostile import (
    ATTESTATIONS,
    POLICY_FILE,
    SIGNERS,
    Doors,
    doors,
    link,
    mallory,
    relax_policy,
    sign_as_mallory,
)
from proof.share import share
from shell.approvals.story import ALICE, BOB, CAROL, POLICY, REFINEMENT_PATH, WP, Story, codes, moment_in
from workpacket.shell.approvals import envelopes
from workpacket.shell.approvals.facts import open_approvals
from workpacket.shell.approvals.uses import FirstAuthors

LEGACY = POLICY.replace(
    "separation = []", 'separation = []\nlegacy_tokens = "accepted although anyone can type them"', 1
)


def a_link_for_the_refinement(story: Story) -> None:
    story.approve()
    link(story, REFINEMENT_PATH, "../../moved-away")


def a_link_for_the_attestations(story: Story) -> None:
    story.approve()
    link(story, ATTESTATIONS, "../moved-away")


def a_link_for_the_policy(story: Story) -> None:
    relax_policy(story)
    sign_as_mallory(story)
    link(story, ".GOV/policy", "../moved-away")


def a_link_for_an_envelope(story: Story) -> None:
    envelope = story.approve()
    link(story, f"{ATTESTATIONS}/{envelope}.dsse.json", "../../moved-away")


def a_link_for_the_log(story: Story) -> None:
    story.approve()
    link(story, f".GOV/log/{WP}", "../../moved-away")


def the_other_place_of_a_refinement(story: Story) -> None:
    story.approve()
    text = story.read(REFINEMENT_PATH)
    (story.root / REFINEMENT_PATH).unlink()
    story.write(f".GOV/task_packets/{WP}/refinement.md", text + "- and more\n")


def a_refinement_in_another_case(story: Story) -> None:
    story.approve()
    text = story.read(REFINEMENT_PATH)
    (story.root / REFINEMENT_PATH).unlink()
    story.write(REFINEMENT_PATH.lower(), text)


def line_ends_by_attributes(story: Story) -> None:
    converted(story, "*.md text eol=crlf\n")


def keywords_by_attributes(story: Story) -> None:
    story.write(REFINEMENT_PATH, story.read(REFINEMENT_PATH) + "- $Id$\n")
    story.commit("with a keyword")
    converted(story, "*.md ident\n")


def converted(story: Story, attributes: str) -> None:
    """Git writes other bytes on a checkout that converts."""
    story.approve()
    story.branch("work")
    story.write(".gitattributes", attributes)
    story.commit("attributes")
    before = (story.root / REFINEMENT_PATH).read_bytes()
    (story.root / REFINEMENT_PATH).unlink()
    git(story.root, "checkout", "--", REFINEMENT_PATH)
    assert (story.root / REFINEMENT_PATH).read_bytes() != before


def a_replaced_base(story: Story) -> None:
    base = git(story.root, "rev-parse", "main")
    git(story.root, "replace", base, evil_commit(story))
    sign_as_mallory(story)


def a_grafted_base(story: Story) -> None:
    base = git(story.root, "rev-parse", "main")
    (story.root / ".git/info").mkdir(exist_ok=True)
    (story.root / ".git/info/grafts").write_text(f"{base} {evil_commit(story)}\n")
    sign_as_mallory(story)


def evil_commit(story: Story) -> str:
    """On a branch of its own; the work tree is as it was afterwards."""
    story.branch("evil")
    relax_policy(story)
    commit = story.commit("as I want it")
    git(story.root, "checkout", "--quiet", "main")
    return commit


def a_tag_with_the_name_of_the_base(story: Story) -> None:
    git(story.root, "tag", "main", evil_commit(story))
    sign_as_mallory(story)


def a_branch_with_the_id_of_the_base(story: Story) -> None:
    base = git(story.root, "rev-parse", "main")
    (story.root / f".git/refs/heads/{base}").write_text(evil_commit(story) + "\n")
    sign_as_mallory(story)


def a_head_that_is_elsewhere(story: Story) -> None:
    git(story.root, "checkout", "--quiet", evil_commit(story))
    sign_as_mallory(story)


def a_policy_as_submodule(story: Story) -> None:
    relax_policy(story)
    sign_as_mallory(story)
    git(
        story.root,
        "update-index",
        "--add",
        "--cacheinfo",
        f"160000,{git(story.root, 'rev-parse', 'HEAD')},.GOV/policy2",
    )
    story.branch("evil")
    git(story.root, "commit", "--quiet", "--message", "a submodule beside it")


def a_wildcard_for_her(story: Story) -> None:
    committed_signers(story, mallory(story).replace("mallory@example.org", "*@example.org"))


def an_authority_of_hers(story: Story) -> None:
    committed_signers(story, mallory(story).replace("namespaces=", "cert-authority,namespaces="))


def a_second_key_of_a_person(story: Story) -> None:
    story.write(SIGNERS, story.read(SIGNERS) + mallory(story).replace("mallory@example.org", ALICE))
    story.write(POLICY_FILE, POLICY.replace("threshold = 1", "threshold = 2", 1))
    story.commit("two persons")
    sign_as_mallory(story, approver=ALICE)
    story.approve()


def committed_signers(story: Story, line: str) -> None:
    story.write(SIGNERS, story.read(SIGNERS) + line)
    story.commit("signers")
    (story.root / ".GOV/policy/allowed_signers").write_text("")


def a_forbidding_deleted(story: Story) -> None:
    envelope = forbidden(story)
    (story.root / f"{ATTESTATIONS}/{envelope}.dsse.json").unlink()


def a_forbidding_edited(story: Story) -> None:
    path = f"{ATTESTATIONS}/{forbidden(story)}.dsse.json"
    story.write(path, story.read(path).replace("reject", "approve"))
    story.write(path, story.read(path)[:-5])


def a_forbidding_as_folder(story: Story) -> None:
    path = story.root / f"{ATTESTATIONS}/{forbidden(story)}.dsse.json"
    path.unlink()
    path.mkdir()


def forbidden(story: Story) -> str:
    """Alice says yes, and then Bob says no on the base; a gate has been asked about it."""
    story.approve()
    envelope = story.approve(BOB, decision="reject")
    story.commit("yes and no")
    story.branch("work")
    assert not story.verdict().met
    return envelope


def a_revocation_deleted(story: Story) -> None:
    envelope = story.approve()
    revocation = story.revoke(envelope, CAROL)
    story.commit("taken back")
    story.branch("work")
    (story.root / f"{ATTESTATIONS}/{revocation}.dsse.json").unlink()


def a_log_deleted(story: Story) -> None:
    story.activate(story.approve())
    story.commit("activated")
    story.branch("work")
    for file in (story.root / f".GOV/log/{WP}").iterdir():
        file.unlink()


def a_policy_with_zero_bytes(story: Story) -> None:
    story.write(POLICY_FILE, story.read(POLICY_FILE) + "\0")
    sign_as_mallory(story)


def an_envelope_of_twenty_megabytes(story: Story) -> None:
    story.write(f"{ATTESTATIONS}/{'a' * 64}.dsse.json", b"[" * 20_000_000)


def an_envelope_without_end(story: Story) -> None:
    (story.root / ATTESTATIONS).mkdir()
    os.mkfifo(story.root / f"{ATTESTATIONS}/{'a' * 64}.dsse.json")


def a_packet_in_another_script(story: Story) -> None:
    """Its log and its refinement look like those of the packet; the first letter is Cyrillic."""
    other = WP.replace("P", "\u0420", 1)
    story.approve()
    (story.root / REFINEMENT_PATH).rename(story.root / REFINEMENT_PATH.replace(WP, other))


Attack = Callable[[Story], None]
SHUT: dict[Attack, str] = {
    a_link_for_the_refinement: "path_not_a_file",
    a_link_for_the_attestations: "path_is_link",
    a_link_for_the_policy: "signer_unknown",
    a_link_for_an_envelope: "path_not_a_file",
    a_link_for_the_log: "path_is_link",
    the_other_place_of_a_refinement: "subject_mismatch",
    a_refinement_in_another_case: "subject_mismatch",
    keywords_by_attributes: "subject_mismatch",
    a_replaced_base: "signer_unknown",
    a_grafted_base: "signer_unknown",
    a_tag_with_the_name_of_the_base: "revision_ambiguous",
    a_branch_with_the_id_of_the_base: "signer_unknown",
    a_head_that_is_elsewhere: "signer_unknown",
    a_policy_as_submodule: "signer_unknown",
    a_wildcard_for_her: "principal_pattern",
    an_authority_of_hers: "signers_malformed",
    a_second_key_of_a_person: "threshold_unmet",
    a_forbidding_deleted: "approval_rejected",
    a_forbidding_edited: "approval_rejected",
    a_forbidding_as_folder: "path_not_a_file",
    a_revocation_deleted: "approval_revoked",
    a_log_deleted: "log_head_unknown",
    a_policy_with_zero_bytes: "signer_unknown",
    an_envelope_of_twenty_megabytes: "approval_missing",
    an_envelope_without_end: "path_not_a_file",
    a_packet_in_another_script: "subject_mismatch",
}


@pytest.mark.parametrize("attack", share(list(SHUT)), ids=lambda attack: attack.__name__)
def test_the_gate_stays_shut(attack: Attack, story: Story) -> None:
    attack(story)
    told = doors(story, "main")
    assert SHUT[attack] in told.gate
    print(told)


def test_line_ends_that_git_converts_are_as_signed_but_the_attribute_does_not_land(story: Story) -> None:
    line_ends_by_attributes(story)
    told = doors(story, "main")
    assert told.gate == frozenset()
    assert "attribute_converts" in told.check & told.verify


@pytest.mark.parametrize("row", [f"{WP} -", "activation -", "", f"{WP} activation - -"])
def test_a_damaged_cache_hides_no_forbidding(row: str, story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is asked only where there are many envelopes, so here two count as many."""
    monkeypatch.setattr(envelopes, "_FEW", 0)
    envelope = forbidden(story)
    (kept,) = (story.home / "config/workpacket/claims").glob("*/*.sqlite")
    with closing(sqlite3.connect(kept)) as cache, cache:
        changed = cache.execute("UPDATE kept SET value = ? WHERE kind = 'claim' AND key = ?", (row, envelope))
        assert changed.rowcount == 1
    assert "approval_rejected" in doors(story, "main").gate


AUTHORS_APART = POLICY.replace("separation = []", 'separation = ["author"]', 1)
# What somebody might write into the settings of the clone, to have its history told differently.
SETTINGS = (
    "log.showRoot=false",
    "log.follow=true",
    "log.diffMerges=combined",
    "log.mailmap=true",
    "log.date=unix",
    "diff.orderFile=missing",
    "diff.renames=copies",
    "diff.relative=true",
    "diff.noprefix=true",
    "diff.ignoreSubmodules=all",
    "i18n.logOutputEncoding=UTF-16",
    "core.quotePath=true",
    "core.ignoreCase=true",
    "core.abbrev=4",
    "color.ui=always",
    "format.pretty=oneline",
    "grep.patternType=perl",
)
# And into the environment of whoever asks.
ENVIRONMENT = (
    "GIT_SHALLOW_FILE={root}/shallow",
    "GIT_GRAFT_FILE={root}/shallow",
    "GIT_REPLACE_REF_BASE=refs/heads/",
    "GIT_DIFF_OPTS=--unified=0",
    "GIT_ICASE_PATHSPECS=1",
    "GIT_NAMESPACE=evil",
    "GIT_DEFAULT_HASH=sha256",
)


@pytest.fixture
def told_before(story: Story) -> Story:
    """An activation that the base has, of a refinement whose author is known from the first commit alone."""
    story.activate(story.approve())
    story.commit("activated")
    story.write(POLICY_FILE, AUTHORS_APART)
    story.commit("authors may not approve")
    story.verdict()
    return story


def set_all(story: Story, *settings: str) -> None:
    for setting in settings:
        name, _, value = setting.partition("=")
        git(story.root, "config", name, value)


@pytest.mark.parametrize("setting", share(SETTINGS))
def test_settings_of_the_clone_change_nothing(setting: str, told_before: Story) -> None:
    before = doors(told_before)
    authors = first_authors(told_before)
    set_all(told_before, setting)
    git(told_before.root, "commit", "--quiet", "--allow-empty", "--message", "so that nothing is remembered")
    told_before.write(".mailmap", "Nobody <nobody@example.org> <ann@example.org>\n")
    assert doors(told_before) == before
    assert first_authors(told_before) == authors == {"Ann <ann@example.org>"}


def first_authors(story: Story) -> frozenset[str]:
    return FirstAuthors(story.repository).of(REFINEMENT_PATH)


@pytest.mark.parametrize("variable", share(ENVIRONMENT))
def test_the_environment_changes_nothing(variable: str, told_before: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    before = doors(told_before)
    git(told_before.root, "commit", "--quiet", "--allow-empty", "--message", "so that nothing is remembered")
    tip = git(told_before.root, "rev-parse", "HEAD")
    (told_before.root / "shallow").write_text(f"{tip}\n")
    name, _, value = variable.partition("=")
    monkeypatch.setenv(name, value.format(root=told_before.root))
    assert doors(told_before) == before


PROGRAMS = (
    "core.fsmonitor={program}",
    "core.hooksPath={folder}",
    "core.pager={program}",
    "core.sshCommand={program}",
    "core.alternateRefsCommand={program}",
    "diff.external={program}",
    "diff.evil.command={program}",
    "diff.evil.textconv={program}",
    "filter.evil.smudge={program}",
    "merge.evil.driver={program}",
    "pager.log={program}",
    "gpg.program={program}",
    "log.showSignature=true",
    "credential.helper={program}",
    "alias.log=!{program}",
    "alias.cat-file=!{program}",
)


def test_no_program_that_the_clone_names_is_run(told_before: Story) -> None:
    folder = told_before.home / "programs"
    folder.mkdir()
    ran = told_before.home / "ran"
    for name in ("program", "post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        (folder / name).write_text(f'#!/bin/sh\necho "$0 $*" >> {ran}\ncat\n')
        (folder / name).chmod(0o755)
    told_before.write(".gitattributes", "* diff=evil filter=evil merge=evil\n")
    told_before.commit("attributes")
    program = folder / "program"
    set_all(told_before, *(each.format(program=program, folder=folder) for each in PROGRAMS))
    told_before.write(REFINEMENT_PATH, told_before.read(REFINEMENT_PATH) + "- changed\n")
    doors(told_before, "HEAD")
    told_before.run("packet", "activate", WP)
    told_before.run("approvals", "list")
    assert not ran.exists(), ran.read_text()


def test_a_path_that_looks_like_a_commit_settles_no_event(story: Story) -> None:
    """Of a file with this name, a list of names would say that another file came with the first commit."""
    first = git(story.root, "rev-parse", "HEAD")
    story.branch("work")
    envelope = story.approve(validity=timedelta(seconds=1))
    event = story.activate(envelope)
    forged = f"\x01{first} 1700000000\n{event.path}"
    story.write(f".GOV/log/{forged.rpartition('/')[0]}/{event.path.rpartition('/')[2]}", "")
    held = (story.root / event.path).read_bytes()
    (story.root / event.path).unlink()
    story.commit("a strange name")
    git(story.root, "branch", "--force", "main", "work")
    story.write(event.path, held)
    with open_approvals(story.repository, "work", moment_in(timedelta(days=20))) as approvals:
        assert not approvals.place(event).brought_by
        assert "approval_expired" in codes(approvals.verdict(WP, "activation", event))


def test_a_token_is_found_again_in_files_that_attributes_call_binary(story: Story) -> None:
    story.write(POLICY_FILE, LEGACY)
    other = ".GOV/refinements/WP-2-Lexer-v1.md"
    story.write(other, "- USER_SIGNATURE: mara310120260930\n")
    story.commit("somewhere else")
    (story.root / other).unlink()
    story.write(".gitattributes", "*.md binary\n")
    story.commit("and gone")
    text = story.read(REFINEMENT_PATH).replace("PENDING", "APPROVED")
    story.write(REFINEMENT_PATH, text.replace("SIGNATURE: <pending>", "SIGNATURE: mara310120260930"))
    assert "legacy_reused" in codes(story.verdict())


def test_an_approval_used_too_late_is_refused_whatever_its_commit_says(story: Story) -> None:
    envelope = story.approve(validity=timedelta(seconds=1))
    story.branch("work")
    event = story.activate(envelope)
    git(story.root, "add", "--all")
    git(story.root, "commit", "--quiet", "--message", "of that day", date="2026-01-01T00:00:00Z")
    with open_approvals(story.repository, "main", moment_in(timedelta(days=2))) as approvals:
        assert "approval_expired" in codes(approvals.verdict(WP, "activation", event))


def test_a_base_that_was_rolled_back_is_not_believed(story: Story) -> None:
    before = git(story.root, "rev-parse", "HEAD")
    story.write(POLICY_FILE, POLICY.replace(f'"{ALICE}", ', ""))
    story.commit("Alice has left")
    story.verdict()
    git(story.root, "reset", "--quiet", "--hard", before)
    assert "policy_rolled_back" in doors(story).gate


def test_a_list_of_revoked_keys_that_the_clone_lacks_is_no_empty_list(story: Story) -> None:
    """As in a clone with `--filter=blob:none`: the tree names the file, and its contents are elsewhere."""
    story.write(".GOV/policy/revoked_keys", (story.home / "alice.pub").read_text())
    story.approve()
    story.commit("Alice's key was stolen")
    blob = git(story.root, "rev-parse", "HEAD:.GOV/policy/revoked_keys")
    (story.root / f".git/objects/{blob[:2]}/{blob[2:]}").unlink()
    assert doors(story) == Doors(*(frozenset({"object_missing"}),) * 3)


def test_the_full_name_of_a_base_says_which_is_meant(story: Story) -> None:
    git(story.root, "tag", "main", evil_commit(story))
    story.approve()
    assert doors(story, "refs/heads/main").gate == frozenset()
