"""`guard`: what may be written now, as a command and as a hook; `prime`; and the hooks that `init --agent` writes."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from bench.governed_trees import write_governed

from git.scratch import git
from workpacket.cli import guard
from workpacket.cli.main import main

LISTS = Path(__file__).parents[1] / "corpora/guard"
CALLS = [
    json.loads(line)
    for name in ("calls.jsonl", "patches.jsonl")
    for line in (LISTS / name).read_text("utf-8").splitlines()
]
TRICKS = [json.loads(line) for line in (LISTS / "tricks.jsonl").read_text("utf-8").splitlines()]
POLICY = (
    '[coverage]\nmode = "required"\nexempt = ["translations/*.po"]\n\n[packets]\nform = "light"\napprovals = "none"\n'
)
SCOPES = {"Mine": ("src/", "docs/*.md", "Makefile"), "Theirs": ("lib/",), "Ready": ("app/",), "Rev": ("rev/",)}


class World:
    """A repository with packets in five lanes; the command runs in its root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def type(self, *words: str, actor: str = "coder", status: int = 0, stdin: str = "") -> str:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.root)
            patch.setenv("WORKPACKET_ACTOR", actor)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            found = main(list(words))
        assert found == status, (words, out.getvalue(), err.getvalue())
        return out.getvalue() + err.getvalue()

    def commit(self, message: str) -> None:
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", message)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("guarded") / "project"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    # The links and repositories that the tricks need.
    exclude = (
        "/nested\n/worktree\n/src/nested\n/src/deep\n/src/loop\n/src/chain\n/src/link\n/src/soft\n/src/hard\nto-*\n"
    )
    (root / ".git/info/exclude").write_text(exclude, "utf-8")
    world = World(root)
    world.type("init", "--dialect", "plain")
    policy = root / ".GOV/policy/policy.toml"
    policy.write_text(POLICY, "utf-8")
    for folder in ("src", "lib", "app", "rev", "new"):
        (root / folder).mkdir()
        (root / folder / "a").write_text("to do\n", "utf-8")
    world.commit("governed")
    for title, scope in {**SCOPES, "Stub": ("new/",)}.items():
        paths = [word for path in scope for word in ("--scope", path)]
        told = ("--criterion", "It is done.", "--prove", "grep -rq done rev", "--requirement", f"{title} is done.")
        world.type("new", title, *told, *paths, "--refinement", f"Write {scope[0]}a.")
    world.commit("packets")
    for title, actor in (("Ready", "coder"), ("Theirs", "other"), ("Rev", "coder"), ("Mine", "coder")):
        git(root, "switch", "-q", "main")
        world.type("start", f"WP-1-{title}-v1", actor=actor)
        if title == "Ready":
            world.type("packet", "release", f"WP-1-{title}-v1", "--reason", "later")
        if title == "Rev":
            (root / "rev/a").write_text("done\n", "utf-8")
            world.commit("work")
            world.type("done")
        world.commit(title)
        branch = git(root, "rev-parse", "--abbrev-ref", "HEAD").strip()
        git(root, "switch", "-q", "main")
        git(root, "merge", "-q", "--no-edit", branch)
    return world


def link(place: Path, target: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


@pytest.fixture(scope="module")
def tricky(world: World) -> Iterator[World]:
    root = world.root
    links = {
        "src/to-lib": "../lib", "src/to-readme": "../README.md", "src/to-root": "..", "src/loop": "loop",
        "src/to-outside": str(root.parent), "src/to-git": "../.git", "src/to-log": "../.GOV/log",
        "src/to-src": "../src", "lib/to-src": "../src", "src/deep/to-up": "../..", "src/to-proc": "/proc/self/cwd",
        "src/chain": "to-src/link", "src/link": "../lib", "src/to-new": "../lib/new.py", "src/soft": "a",
    }  # fmt: skip
    for place, target in links.items():
        link(root / place, target)
    os.link(root / "lib/a", root / "src/hard")
    for nested in ("nested", "src/nested"):
        (root / nested / ".GOV").mkdir(parents=True)
        git(root / nested, "init", "-q")
    git(root, "worktree", "add", "-q", "worktree", "-b", "other", "main")
    yield world
    git(root, "worktree", "remove", "--force", "worktree")


def filled(value: Any, root: Path) -> Any:
    text = json.dumps(value).replace("{root}", str(root)).replace("{name}", root.name)
    return json.loads(text)


@pytest.fixture
def here(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.chdir(world.root)
    monkeypatch.setenv("WORKPACKET_ACTOR", "coder")
    # The other tests add all files to the index; here, git must not ignore these, because ignored files are free.
    exclude = world.root / ".git/info/exclude"
    whole = exclude.read_text("utf-8")
    exclude.write_text(re.sub(r"^/(?:nested|worktree|src/nested)\n", "", whole, flags=re.MULTILINE), "utf-8")
    yield world
    exclude.write_text(whole, "utf-8")


@pytest.mark.share(8)
@pytest.mark.parametrize("case", CALLS, ids=lambda case: case["id"])
def test_each_listed_tool_call_is_judged_as_listed(
    case: dict[str, Any],
    tricky: World,
    here: World,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = json.dumps(filled(case["call"], here.root))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(call.encode())))
    status = main(["guard", "--agent", case["agent"]])
    out = capsys.readouterr().out
    assert status == (1 if case["expect"] == "failed" else 0), case["why"]
    assert ('"deny"' in out) is (case["expect"] == "deny"), case["why"]
    if case["expect"] == "deny":
        answer = json.loads(out)
        said = (
            answer["reason"] if case["agent"] == "gemini" else answer["hookSpecificOutput"]["permissionDecisionReason"]
        )
        assert "next: " in said
    else:
        assert out == ""


@pytest.mark.parametrize("case", TRICKS, ids=lambda case: case["id"])
def test_no_trick_with_paths_gets_past_the_contract(
    case: dict[str, Any], tricky: World, here: World, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["guard", filled(case["path"], here.root)])
    capsys.readouterr()
    assert (status == 3) is (case["expect"] == "deny"), case["path"]


# --- git, and continuously ---


def test_what_is_staged_is_judged_and_new_events_are_not(world: World) -> None:
    (world.root / "src/staged.py").write_text("x\n", "utf-8")
    world.type("packet", "note", "WP-1-Mine-v1", "begun")
    git(world.root, "add", "src/staged.py", ".GOV")
    try:
        world.type("guard", "--staged")
        (world.root / "lib/staged.py").write_text("x\n", "utf-8")
        git(world.root, "add", "lib/staged.py")
        assert "lib/staged.py" in world.type("guard", "--staged", status=3)
    finally:
        git(world.root, "reset", "-q", "--hard")


def test_an_edited_event_that_is_staged_is_refused(world: World) -> None:
    event = next((world.root / ".GOV/log/WP-1-Mine-v1").iterdir())
    event.write_bytes(event.read_bytes() + b"\n")
    git(world.root, "add", ".GOV")
    try:
        assert "path_protected" in world.type("guard", "--staged", status=3)
    finally:
        git(world.root, "reset", "-q", "--hard")


def test_what_a_branch_changed_is_judged(world: World) -> None:
    git(world.root, "switch", "-qc", "feature")
    (world.root / "app/late.py").write_text("x\n", "utf-8")
    world.commit("late")
    try:
        assert "app/late.py" in world.type("guard", "--base", "main", status=3)
    finally:
        git(world.root, "switch", "-q", "main")


def test_a_packet_whose_scope_was_widened_by_hand_covers_nothing(world: World) -> None:
    document = world.root / ".GOV/task_packets/WP-1-Mine-v1.md"
    text = document.read_text("utf-8")
    assert "Makefile" in text
    document.write_text(text.replace("Makefile", "README.md"), "utf-8")
    try:
        assert "contract_changed" in world.type("guard", "README.md", status=3)
        assert "contract_changed" in world.type("guard", "src/a", status=3)
    finally:
        document.write_text(text, "utf-8")
    world.type("guard", "src/a")


def test_watching_reports_a_change_when_it_appears(world: World) -> None:
    environment = {**os.environ, "WORKPACKET_ACTOR": "coder", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "workpacket", "guard", "--watch"]
    watching = subprocess.Popen(command, cwd=world.root, env=environment, stdout=subprocess.PIPE, text=True)
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().startswith("watching")
        (world.root / "lib/watched.py").write_text("x\n", "utf-8")
        assert watching.stdout.readline().startswith("lib/watched.py must not be written")
    finally:
        watching.send_signal(signal.SIGINT)
        assert watching.wait(10) == 0
        watching.stdout.close()
        (world.root / "lib/watched.py").unlink()


# --- a hook that fails ---


@pytest.mark.parametrize("stdin", ["", "{", "[]", '{"tool_name": "Write"}', '{"tool_name": "Write", "tool_input": 7}'])
def test_a_hook_that_cannot_judge_says_so_and_never_blocks(world: World, stdin: str) -> None:
    said = world.type("guard", "--agent", "claude", status=1, stdin=stdin)
    assert "could not judge this call, and does not stop it" in said


def test_a_hook_outside_of_a_governed_repository_is_silent(tmp_path: Path) -> None:
    call = {"tool_name": "Write", "cwd": str(tmp_path), "tool_input": {"file_path": "x"}}
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "workpacket", "guard", "--agent", "claude"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, input=json.dumps(call), check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


# --- prime ---


def tokens(text: str) -> int:
    import bpe_openai  # type: ignore[import-untyped]

    return len(bpe_openai.get_encoding("cl100k_base").encode(text))


@pytest.mark.filterwarnings("ignore:open_binary:DeprecationWarning")
def test_prime_tells_rules_packets_and_what_is_missing(world: World) -> None:
    said = world.type("prime")
    assert "You act as coder." in said
    assert "any other change fails in CI" in said
    assert "- WP-1-Mine-v1, IN_PROGRESS" in said
    assert "> criterion 1, open: It is done." in said
    assert "- WP-1-Ready-v1: workpacket start WP-1-Ready-v1" in said
    assert tokens(said) <= 2000


@pytest.mark.parametrize("agent", guard.AGENTS)
def test_prime_as_a_hook_gives_the_same_text_as_context(world: World, agent: str) -> None:
    answer = json.loads(world.type("prime", "--agent", agent))
    assert answer["hookSpecificOutput"]["additionalContext"] == world.type("prime")


@pytest.mark.filterwarnings("ignore:open_binary:DeprecationWarning")
def test_prime_in_a_repository_without_packets_is_short(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    empty = World(tmp_path)
    empty.type("init", "--dialect", "plain")
    empty.commit("governed")
    assert tokens(empty.type("prime")) <= 600


@pytest.mark.filterwarnings("ignore:open_binary:DeprecationWarning")
@pytest.mark.parametrize("count", [20, pytest.param(1000, marks=pytest.mark.long)])
def test_prime_stays_short_however_many_packets_there_are(tmp_path: Path, count: int) -> None:
    root = tmp_path / "governed"
    ready = write_governed(root, count)
    git(root, "switch", "-qc", "work")
    repository = World(root)
    for name in ready[:3]:
        repository.type("claim", name)
    said = repository.type("prime")
    assert "You hold 3 packets" in said
    assert 300 <= tokens(said) <= 2000


# --- init --agent ---


def test_the_hooks_of_an_agent_are_added_once_and_removed_again(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    own = '{"model": "x", "hooks": {"Stop": [], "PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(own, "utf-8")
    repository = World(tmp_path)
    assert "2 hooks added" in repository.type("init", "--agent", "claude")
    once = settings.read_bytes()
    assert json.loads(once)["hooks"]["PreToolUse"][1]["matcher"] == "Write|Edit|MultiEdit|NotebookEdit"
    assert "already has the requested content" in repository.type("init", "--agent", "claude")
    assert settings.read_bytes() == once
    assert "were removed" in repository.type("init", "--agent", "claude", "--remove")
    assert json.loads(settings.read_bytes()) == json.loads(own)


def test_settings_that_were_not_there_disappear_with_the_hooks(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    repository = World(tmp_path)
    repository.type("init", "--agent", "gemini")
    hooks = json.loads((tmp_path / ".gemini/settings.json").read_bytes())["hooks"]
    assert hooks["BeforeTool"][0]["matcher"] == "write_file|replace"
    repository.type("init", "--agent", "gemini", "--remove")
    assert not (tmp_path / ".gemini/settings.json").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}'])
def test_settings_that_cannot_be_extended_are_left_alone(tmp_path: Path, text: str) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(text, "utf-8")
    assert "cannot be extended" in World(tmp_path).type("init", "--agent", "claude", status=2)
    assert settings.read_text("utf-8") == text


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:open_binary:DeprecationWarning")
def test_prime_of_someone_who_holds_long_packets_stays_short(world: World) -> None:
    long = "a sentence that goes on and on, " * 40
    for number in range(3):
        more = [
            word for line in range(5) for word in ("--criterion", f"{line} {long}", "--prove", "grep -q done new/a")
        ]
        told = (*more, "--criterion", long, "--prove", "grep -q done new/a", "--scope", "new/", "--requirement", long)
        world.type("new", f"Long {number}", *told, "--refinement", long)
    world.commit("long")
    git(world.root, "switch", "-qc", "long")
    for number in range(3):
        world.type("packet", "activate", f"WP-1-Long-{number}-v1")
        world.type("claim", f"WP-1-Long-{number}-v1")
    said = world.type("prime")
    git(world.root, "reset", "-q", "--hard")
    git(world.root, "switch", "-q", "main")
    assert "You hold 4 packets" in said
    assert tokens(said) <= 2000
