"""`init` asks nothing, writes little, never overwrites, and brings up to date what nobody edited."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from git.scratch import git
from lifecycle.governed import QA, Governed
from lifecycle.world import ADDED
from workpacket.cli import init
from workpacket.cli.init import instructions, read_package, skills
from workpacket.lifecycle.init import AGENTS, BEGIN, END, known_digest, marked
from workpacket.lifecycle.policy import AddedGate, LifecyclePolicy
from workpacket.lifecycle.starter_documents import (
    DIALECTS,
    GOV_JUST,
    GROUPS,
    INSTALLING,
    Dialect,
    StarterTexts,
    protocols,
    starting_files,
)
from workpacket.lifecycle.transitions import ADVANCED, CAME_FROM, transitions
from workpacket.model import exits
from workpacket.model.layout import POLICY_PATH
from workpacket.shell.package_files import SHIPPED, read_shipped

ROOT = Path(__file__).parents[2]
PROTOCOL = ".GOV/roles/coder/CODER_PROTOCOL.md"
FROM = ("--from", "workpacket==0.1.0")
EVERYTHING = (*(f"--{group}" for group in GROUPS), *FROM)
ORCHESTRATOR = ".GOV/roles/orchestrator/ORCHESTRATOR_PROTOCOL.md"
VALIDATOR = ".GOV/roles/validator/VALIDATOR_PROTOCOL.md"
OLDER = "# Coder protocol\n\nAs an older version wrote it.\n"


def package() -> StarterTexts:
    return read_package(instructions(), skills())


@pytest.fixture
def once_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of the tool that remembers one more text for the protocol and one for the section of AGENTS.md."""
    known = read_shipped()
    known[PROTOCOL] |= {known_digest(OLDER)}
    known[AGENTS] |= {known_digest(marked("An older section."))}
    monkeypatch.setattr(init, "read_shipped", lambda: known)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_second_call_changes_nothing_and_what_it_wrote_holds(governed: Governed, dialect: str) -> None:
    governed.done("init", "--dialect", dialect, *EVERYTHING)
    before = governed.files()
    again = governed.done("init")
    assert governed.files() == before
    assert again.out.startswith("0 files written")
    assert again.next == "workpacket status"
    governed.done("init", "--check", *EVERYTHING)
    governed.done("check", "--fail-on", "warning")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_written_is_what_is_listed(governed: Governed, dialect: str) -> None:
    listed = governed.json("init", "--dialect", dialect)["data"]
    assert set(listed["changed"]) == {*listed["written"], ".gitignore"} == set(governed.files())
    assert listed["offered"] == list(GROUPS)


def test_little_is_written_unless_it_is_asked_for(governed: Governed) -> None:
    governed.done("init", "--dialect", "plain")
    assert {path for path in governed.files() if not path.startswith(".GOV/")} == {AGENTS, ".gitignore"}
    assert not (governed.root / ".git" / "hooks" / "pre-commit").exists()
    assert len(governed.files()) == 13


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_that_is_there_is_kept_complete_only_on_request(governed: Governed, group: str) -> None:
    installing = FROM if group in INSTALLING else ()
    written = set(governed.json("init", f"--{group}", *installing)["data"]["written"])
    own = {file.path for file in starting_files("plain", package()) if file.group == group}
    assert own
    assert own <= written
    (governed.root / min(own)).unlink()
    governed.done("init")
    assert not (governed.root / min(own)).exists()
    governed.done("init", f"--{group}", *installing)
    assert (governed.root / min(own)).exists()


def test_a_file_that_nobody_edited_is_brought_up_to_date(governed: Governed, once_shipped: None) -> None:
    governed.done("init")
    now = governed.read(PROTOCOL)
    governed.write(PROTOCOL, OLDER)
    assert "starter_outdated" in governed("init", "--check").out
    result = governed.done("init")
    assert f"updated: {PROTOCOL}" in result.out
    assert governed.read(PROTOCOL) == now


def with_lane(governed: Governed) -> None:
    """The protocols as they are after the policy has added a lane, with a gate on the way out of it."""
    governed.done("init")
    gate = '\n[lifecycle.gates.tested]\non = "advance QA"\n'
    governed.write(POLICY_PATH, governed.read(POLICY_PATH) + QA + gate)
    governed.done("init")


def test_protocols_follow_the_lanes_and_gates_of_the_policy_and_back(governed: Governed) -> None:
    governed.done("init")
    usual, policy = {path: governed.read(path) for path, _ in protocols()}, governed.read(POLICY_PATH)
    with_lane(governed)
    assert "| `advance` | QA | MERGE_PENDING | tested | testers try it on" in governed.read(ORCHESTRATOR)
    assert "| `verdict PASS` | IN_REVIEW | QA | verdict | a validator accepts the work |" in governed.read(VALIDATOR)
    assert governed.json("init", "--check")["findings"] == []
    governed.write(POLICY_PATH, policy)
    assert "starter_outdated" in governed("init", "--check").out
    governed.done("init")
    assert {path: governed.read(path) for path in usual} == usual


def test_every_move_that_a_policy_makes_stands_in_the_protocols() -> None:
    policy = LifecyclePolicy(lanes=ADDED, gates=(AddedGate("security", "submit"),))
    text = "\n".join(page for _, page in protocols(policy))
    for row in transitions(ADDED):
        typed = row.command if row.event == ADVANCED else row.typed
        assert f"| `{typed}` | {', '.join(row.origins) or '-'} | " in text, (
            f"{row}: `by` in tools/workpacket/lifecycle/transitions.py names the protocols that list it; "
            "_row in tools/workpacket/lifecycle/starter_documents.py writes the line"
        )
        assert not row.origins or row.target == CAME_FROM or f" | {row.target} | " in text
    assert "| `submit` | IN_PROGRESS | SELF_TEST | submit, security |" in text


@pytest.mark.parametrize("dialect", ["handshake", "plain"])
def test_an_edit_outside_of_the_moves_is_left_whatever_the_policy_says(governed: Governed, dialect: str) -> None:
    governed.done("init", "--dialect", dialect)
    with_lane(governed)
    governed.replace(ORCHESTRATOR, "You maintain the backlog", "You, Ada, keep the backlog")
    governed.replace(POLICY_PATH, "testers try it", "Bob tries it")
    assert governed.json("init")["data"]["edited"] == [ORCHESTRATOR]
    assert "Bob tries it" in governed.read(VALIDATOR)


def test_line_ends_and_a_byte_order_mark_are_no_edit_and_stay(governed: Governed, once_shipped: None) -> None:
    governed.done("init")
    governed.write(".GOV/.gitattributes", "# ours: git converts nothing here\n")
    now = governed.read(PROTOCOL).encode()
    (governed.root / PROTOCOL).write_bytes(b"\xef\xbb\xbf" + OLDER.replace("\n", "\r\n").encode())
    governed.done("init")
    assert (governed.root / PROTOCOL).read_bytes() == b"\xef\xbb\xbf" + now.replace(b"\n", b"\r\n")


def test_where_git_stores_lf_a_file_is_written_with_lf(governed: Governed, once_shipped: None) -> None:
    governed.done("init")
    now = governed.read(PROTOCOL).encode()
    (governed.root / PROTOCOL).write_bytes(OLDER.replace("\n", "\r\n").encode())
    governed.done("init")
    assert (governed.root / PROTOCOL).read_bytes() == now


def test_attributes_of_an_older_init_are_named_by_check_and_completed_by_init(governed: Governed) -> None:
    governed.begin()
    governed.stub("WP-1-Greeting-v1")
    attributes = ".GOV/.gitattributes"
    now = governed.read(attributes)
    governed.write(attributes, now.replace("* text=auto eol=lf\n", ""))
    (found,) = (each for each in governed.json("check")["findings"] if each["code"] == "attributes_missing")
    assert found["message"] == "it lacks 1 line that `init` writes: * text=auto eol=lf"
    governed.done("init")
    assert governed.read(attributes) == now
    assert "attributes_missing" not in governed("check").out


def test_an_edited_file_is_left_and_said(governed: Governed, once_shipped: None) -> None:
    governed.done("init")
    governed.write(PROTOCOL, OLDER + "And ours.\n")
    assert f"left unchanged: {PROTOCOL}" in governed.done("init").out
    assert governed.read(PROTOCOL) == OLDER + "And ours.\n"
    checked = governed.done("init", "--check")
    assert "starter_edited" in checked.out


def test_a_text_that_was_shipped_elsewhere_is_an_edit_here(governed: Governed) -> None:
    governed.done("init")
    governed.write(PROTOCOL, governed.read(".GOV/roles/validator/VALIDATOR_PROTOCOL.md"))
    assert governed.json("init")["data"]["edited"] == [PROTOCOL]


def test_what_belongs_to_the_repository_is_never_replaced(governed: Governed) -> None:
    theirs = {file.path for file in starting_files("handshake", package()) if not file.ours}
    assert len(theirs) == 6
    for path in theirs:
        governed.write(path, "ours\n")
    governed.done("init")
    assert {governed.read(path) for path in theirs} == {"ours\n"}


def test_no_first_specification_where_one_is_named(governed: Governed) -> None:
    governed.write(".GOV/roles_shared/SPEC_CURRENT.md", "ours.md\n")
    governed.done("init")
    assert not (governed.root / ".GOV/spec/SPEC_v1.md").exists()


def test_what_comes_next_depends_on_what_was_there(governed: Governed) -> None:
    first = governed.done("init", "--skills").next
    assert "git add .gitignore .GOV justfile .agents .claude AGENTS.md && git commit" in first
    assert governed.done("init", "--pre-commit", *FROM).next.startswith("git add .pre-commit-config.yaml && git commit")


def test_where_a_board_was_the_packets_are_adopted_next(governed: Governed) -> None:
    governed.write(".GOV/roles_shared/TASK_BOARD.md", "# Task Board\n")
    governed.write(".GOV/roles_shared/SPEC_CURRENT.md", "spec.md\n")
    steps = governed.done("init").next.split(", then: ")
    assert (steps[0], steps[-1]) == ("workpacket key init", "workpacket adopt")


def test_a_check_writes_nothing_and_fails_for_what_is_missing(governed: Governed) -> None:
    result = governed("init", "--check")
    assert (result.status, governed.files()) == (1, {})
    assert "starter_missing" in result.out
    governed.done("init")
    (governed.root / GOV_JUST).unlink()
    findings = governed.json("init", "--check")["findings"]
    assert [(one["code"], one["path"]) for one in findings] == [("starter_missing", GOV_JUST)]


@pytest.mark.parametrize("path", [PROTOCOL, AGENTS])
def test_what_a_link_leads_to_is_not_written(governed: Governed, path: str) -> None:
    governed.write("elsewhere.md", "ours\n")
    target = governed.root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(governed.root / "elsewhere.md")
    assert path in governed.json("init")["data"]["edited"]
    assert governed.read("elsewhere.md") == "ours\n"


# --- the section of AGENTS.md


OWNERS = [
    b"", b"# Ours\n", b"# Ours\n\nNo end", b"# Ours\r\n\r\nWords\r\n", b"\xef\xbb\xbf# Ours\n", b"\xff\xfe odd \n \n\n",
    b"a\r\nb\nc\n",
]  # fmt: skip


@pytest.mark.parametrize("text", OWNERS, ids=range(len(OWNERS)))
def test_every_other_byte_of_agents_md_is_its_owners(governed: Governed, text: bytes, once_shipped: None) -> None:
    path = governed.root / AGENTS
    path.write_bytes(text)
    governed.done("init")
    written = path.read_bytes()
    assert written.startswith(text)
    assert marked(instructions()) in written.decode("utf-8", "replace").replace("\r\n", "\n")
    # Words behind the section, and an older section in it, as after some years.
    line_end = b"\r\n" if b"\r\n" in text else b"\n"
    start, end = written.index(b"<!-- workpacket:begin"), written.index(END.encode()) + len(END)
    older = marked("An older section.").encode().replace(b"\n", line_end)
    path.write_bytes(written[:start] + older + written[end:] + b"Behind\n")
    governed.done("init")
    assert path.read_bytes() == written + b"Behind\n"


@pytest.mark.parametrize(
    "text",
    [f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n", f"{BEGIN}\nours\n{END}\n"],
    ids=["no-end", "turned-round", "twice", "edited"],
)
def test_marks_that_do_not_say_what_is_ours_are_left(governed: Governed, text: str) -> None:
    governed.write(AGENTS, text)
    assert governed.json("init")["data"]["edited"] == [AGENTS]
    assert governed.read(AGENTS) == text


def test_an_agent_is_told_in_twenty_lines() -> None:
    assert len(marked(instructions()).splitlines()) <= 20


# --- dialects


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_dialect_is_the_one_that_the_repository_shows(governed: Governed, dialect: Dialect) -> None:
    governed.done("init", "--dialect", dialect)
    gone = next(path for path in governed.files() if not path.startswith((".GOV/spec", ".GOV/templates")))
    (governed.root / gone).unlink()
    assert governed.json("init")["data"]["written"] == [gone]


def test_a_repository_with_missions_speaks_their_language(governed: Governed) -> None:
    governed.write("kitty-specs/001-parser/tasks/WP01-read.md", "---\nwork_package_id: WP01\ntitle: Read\n---\n")
    governed.done("init")
    assert "| for_review | IN_REVIEW |" in governed.read(".GOV/README.md")
    template = governed.read(".GOV/templates/WORK_PACKAGE_TEMPLATE.md")
    governed.write("kitty-specs/001-parser/tasks/WP01-read.md", template)
    governed.done("check", "--fail-on", "warning")


def test_documents_that_were_there_first_are_judged_mildly(governed: Governed) -> None:
    governed.write(".GOV/roles_shared/TASK_BOARD.md", "# Task Board\n")
    governed.done("init")
    assert 'profile = "adopt"' in governed.read(".GOV/policy/policy.toml")


def test_missions_beside_a_board_kept_by_hand_are_no_reason_to_leave_out_its_recipes(governed: Governed) -> None:
    governed.write("kitty-specs/001-x/tasks/WP01-a.md", "x\n")
    governed.write(".GOV/roles_shared/TASK_BOARD.md", "# Board\n")
    governed.done("init")
    assert (governed.root / ".GOV/gov.just").is_file()
    assert governed.done("init", "--check").status == 0


@pytest.mark.parametrize("dialect", ["plain", "spec-kitty"])
def test_where_there_are_no_recipes_none_is_named(dialect: Dialect) -> None:
    texts = [file.text for file in starting_files(dialect, package()) if file.path.startswith(".GOV/roles/")]
    assert len(texts) == 3
    assert [text for text in texts if "`just " in text] == []


# --- what is there for editors


def test_settings_for_editors_name_schemas_that_are_written(governed: Governed) -> None:
    governed.done("init", "--vscode")
    text = governed.read(".vscode/settings.json")
    named = set(re.findall(r'"\./(\.GOV/schemas/[^"]+)"', text))
    assert len(named) == 8
    for path in named:
        schema = governed.read(path)
        for other in re.findall(r'"\$ref": "([^"#]+)', schema):
            assert (governed.root / ".GOV/schemas" / other).exists()
        assert json.loads(schema)["$schema"].startswith("http://json-schema.org/draft-07/")
    modeline = governed.read(".GOV/policy/policy.toml").splitlines()[0].removeprefix("#:schema ")
    assert (governed.root / ".GOV/policy" / modeline).resolve().is_relative_to(governed.root)
    assert (governed.root / ".GOV/policy" / modeline).exists()


# --- what was ever shipped


def test_every_text_of_ours_is_known_for_later_versions() -> None:
    known = read_shipped()
    for dialect in DIALECTS:
        for file in starting_files(dialect, package()):
            if file.ours:
                assert known_digest(file.text) in known[file.path], f"run `just reference`: {file.path}"


def test_no_digest_that_was_committed_is_forgotten() -> None:
    path = Path(SHIPPED).relative_to(ROOT).as_posix()
    committed = git(ROOT, "show", f"HEAD:{path}").splitlines()
    assert set(committed) <= set(Path(SHIPPED).read_text("utf-8").splitlines())


def test_the_hooks_are_those_that_we_publish() -> None:
    """With the same words, so that `init --pre-commit` and `repo:` with our address do the same."""
    published = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    offered = yaml.safe_load(package().pre_commit)["repos"][0]["hooks"]
    own = {"language", "description", "minimum_pre_commit_version", "additional_dependencies"}
    assert [{key: hook[key] for key in hook if key not in own} for hook in published] == [
        {key: hook[key] for key in hook if key not in own} for hook in offered
    ]


def test_a_hook_is_installed_by_nobody_but_the_user(governed: Governed) -> None:
    hooks = governed.root / ".git" / "hooks"
    shutil.rmtree(hooks, ignore_errors=True)
    governed.done("init", *EVERYTHING)
    assert not hooks.exists()
    staged = subprocess.run(
        ["git", "diff", "--cached", "--name-only"], cwd=governed.root, capture_output=True, check=True
    )
    assert staged.stdout == b""


def test_a_workflow_that_installs_from_this_machine_is_refused(governed: Governed) -> None:
    """The tests run from a work tree, which CI cannot install."""
    for group in INSTALLING:
        refused = governed("init", f"--{group}")
        assert refused.status == exits.USAGE
        assert "install_source_local" in refused.err
    assert not governed.files()


def test_what_is_installed_elsewhere_stays_until_it_is_asked_for_again(governed: Governed) -> None:
    workflow = ".github/workflows/workpacket.yml"
    governed.done("init", "--workflow", "--from", "workpacket==0.1.0")
    assert 'WORKPACKET: "workpacket==0.1.0"' in governed.read(workflow)
    governed.done("init")
    assert governed.json("init", "--check")["findings"] == []
    governed.done("init", "--workflow", "--from", "workpacket==0.2.0")
    assert 'WORKPACKET: "workpacket==0.2.0"' in governed.read(workflow)


def test_from_without_a_file_that_installs_is_a_usage_error(governed: Governed) -> None:
    refused = governed("init", "--from", "workpacket==0.1.0")
    assert refused.status == exits.USAGE
    assert "conflicting_options" in refused.err


def test_a_main_branch_with_an_unusual_name_is_known_beside_other_branches(governed: Governed) -> None:
    git(governed.root, "symbolic-ref", "HEAD", "refs/heads/release/2.0")
    said = governed.done("init", "--commit").out
    assert "  - git config init.defaultBranch release/2.0: other branches would hide" in said
    git(governed.root, "branch", "wp/WP-1-Other-v1")
    target = next(line for line in governed.done("policy", "show").out.splitlines() if line.startswith("target_branch"))
    assert "release/2.0" in target
    assert "defaultBranch" not in governed.done("init").out


def test_adopt_records_a_main_branch_with_an_unusual_name_too(governed: Governed) -> None:
    governed.done("init", "--commit")
    git(governed.root, "symbolic-ref", "HEAD", "refs/heads/release")
    git(governed.root, "update-ref", "refs/heads/release", git(governed.root, "rev-parse", "main"))
    git(governed.root, "branch", "--quiet", "-D", "main")
    assert "  - git config init.defaultBranch release: other branches would hide" in governed.done("adopt").out
    git(governed.root, "branch", "wp/WP-1-Other-v1")
    assert "release" in next(
        line for line in governed.done("policy", "show").out.splitlines() if line.startswith("target_branch")
    )
    assert "defaultBranch" not in governed.done("adopt").out


@pytest.mark.parametrize("name", ["main", "trunk"])
def test_a_main_branch_that_git_finds_is_not_recorded(governed: Governed, name: str) -> None:
    git(governed.root, "symbolic-ref", "HEAD", f"refs/heads/{name}")
    assert "defaultBranch" not in governed.done("init", "--commit").out
