"""Work trees that do not show everything that their repository holds, each made with real git."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from lifecycle.governed import Governed

READY, BUSY, STUB, POEM, OLD = (f"WP-1-{name}-v1" for name in ("Greeting", "Busy", "Song", "Poem", "Old"))
FRESH = "WP-1-Fresh-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
POLICY = ".GOV/policy/policy.toml"
LOG = ".GOV/log"
STUBS = ".GOV/task_packets/stubs"

COMMANDS: dict[str, tuple[str, ...]] = {
    "init": ("init",),
    "adopt": ("adopt",),
    "new": ("new", FRESH, "--what", "Sing", "--why", "It is fun"),
    "refine": ("refine", POEM),
    "create-task-packet": ("create-task-packet", STUB),
    "claim": ("claim", READY, "--as", "coder"),
    "block": ("block", BUSY, "--reason", "a key is missing", "--until", "the key is here", "--as", "coder"),
    "abandon": ("abandon", READY, "--reason", "not wanted any more"),
    "board-sync": ("board", "sync"),
    "registry-sync": ("registry", "sync"),
    "check-fix": ("check", "--fix"),
    "fmt": ("fmt",),
}


def build(governed: Governed) -> None:
    """A repository in which each of the commands has something to do."""
    governed.begin()
    governed.write("src/greet.py", "print('hello')\n")
    for name in (READY, BUSY):
        governed.activate(name)
        governed.commit(f"activated {name}")
        governed.done("packet", "prepare", name, "--for", "coder")
    governed.done("claim", BUSY, "--as", "coder")
    governed.stub(STUB)
    governed.refine(STUB)
    governed.done("refine", STUB, "--present")
    governed.sign(STUB)
    governed.stub(POEM)
    governed.stub(OLD)
    shutil.rmtree(governed.root / LOG / OLD)
    stub = f"{STUBS}/{POEM}.md"
    governed.write(stub, f"\ufeff{governed.read(stub)}")
    governed.replace(BOARD, f"**[{BUSY}]** - [IN_PROGRESS]", f"**[{BUSY}]** - [READY_FOR_DEV]")
    governed.commit("As it is")


def run(folder: Path, command: str) -> None:
    """A line of shell, as a person types it."""
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def copied(whole: Path, folder: Path) -> Path:
    shutil.copytree(whole, folder)
    run(folder, "git update-index -q --refresh")
    return folder


def _in_a_copy(*commands: str) -> Callable[[Path, Path], Path]:
    def make(whole: Path, folder: Path) -> Path:
        copied(whole, folder)
        for command in commands:
            run(folder, command)
        return folder

    return make


def _in_a_clone(options: str, *commands: str) -> Callable[[Path, Path], Path]:
    def make(whole: Path, folder: Path) -> Path:
        run(whole.parent, f"git clone -q {options} file://{whole} {folder}")
        for command in commands:
            run(folder, command)
        return folder

    return make


def _in_a_work_tree(options: str, *commands: str) -> Callable[[Path, Path], Path]:
    def make(whole: Path, folder: Path) -> Path:
        main = copied(whole, folder)
        run(main, f"git worktree add -q {options} -b side ../{folder.name}-side")
        beside = folder.with_name(f"{folder.name}-side")
        for command in commands:
            run(beside, command)
        return beside

    return make


def _with_sha256(whole: Path, folder: Path) -> Path:
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns(".git"))
    for command in (
        "git init -q -b main --object-format=sha256",
        "git add -A",
        "git commit -q -m all",
        "git sparse-checkout set --cone src",
    ):
        run(folder, command)
    return folder


def _as_a_submodule(whole: Path, folder: Path) -> Path:
    folder.mkdir()
    run(folder, f"git init -q -b main && git submodule --quiet add file://{whole} inner")
    run(folder / "inner", "git sparse-checkout set --cone src")
    return folder / "inner"


def _with_governance_in_a_submodule(whole: Path, folder: Path) -> Path:
    rules = folder.with_name(f"{folder.name}-rules")
    shutil.copytree(whole / ".GOV", rules)
    run(rules, "git init -q -b main && git add -A && git commit -q -m rules")
    outer = folder.with_name(f"{folder.name}-outer")
    shutil.copytree(whole, outer, ignore=shutil.ignore_patterns(".git", ".GOV"))
    run(outer, f"git init -q -b main && git submodule --quiet add file://{rules} .GOV && git add -A")
    run(outer, "git commit -q -m outer")
    run(folder.parent, f"git clone -q file://{outer} {folder}")
    return folder


def newest_event(root: Path, packet: str) -> Path:
    return max((root / LOG / packet).iterdir(), key=lambda path: path.name)


def _without_its_newest_event(whole: Path, folder: Path) -> Path:
    newest_event(copied(whole, folder), READY).unlink()
    return folder


def _sparse_without_an_event(whole: Path, folder: Path) -> Path:
    event = newest_event(copied(whole, folder), READY).relative_to(folder)
    run(folder, f"git sparse-checkout set --no-cone '/*' '!/{event.as_posix()}'")
    return folder


def _sparse_without(pattern: str) -> Callable[[Path, Path], Path]:
    return _in_a_copy(f"git sparse-checkout set --no-cone '/*' '!/{pattern}'")


KINDS: dict[str, Callable[[Path, Path], Path]] = {
    "whole": _in_a_copy(),
    "sparse_cone": _in_a_copy("git sparse-checkout set --cone src"),
    "sparse_cone_index": _in_a_copy("git sparse-checkout set --cone --sparse-index src"),
    "sparse_no_cone": _in_a_copy("git sparse-checkout set --no-cone /src/"),
    "sparse_without_log": _sparse_without(f"{LOG}/"),
    "sparse_without_board": _sparse_without(BOARD),
    "sparse_without_policy": _sparse_without(".GOV/policy/"),
    "sparse_without_event": _sparse_without_an_event,
    "sparse_worktree": _in_a_work_tree("", "git sparse-checkout set --cone src"),
    "sparse_sha256": _with_sha256,
    "sparse_submodule": _as_a_submodule,
    "blobless_sparse": _in_a_clone("--filter=blob:none --sparse"),
    "blobless": _in_a_clone("--filter=blob:none"),
    "skip_worktree_board": _in_a_copy(f"git update-index --skip-worktree {BOARD} && rm {BOARD}"),
    "assume_unchanged_board": _in_a_copy(f"git update-index --assume-unchanged {BOARD} && rm {BOARD}"),
    "assume_unchanged_log": _in_a_copy(
        f"git ls-files -z {LOG}/{READY} | xargs -0 git update-index --assume-unchanged && rm -r {LOG}/{READY}"
    ),
    "no_checkout": _in_a_clone("--no-checkout"),
    "treeless_no_checkout": _in_a_clone("--no-checkout --filter=tree:0"),
    "no_checkout_worktree": _in_a_work_tree("--no-checkout"),
    "submodule_empty": _with_governance_in_a_submodule,
    "staged_policy": _in_a_copy(f"git rm -q {POLICY}"),
    "intent_to_add": _in_a_copy(
        f"cp {STUBS}/{STUB}.md {STUBS}/{FRESH}.md && git add -N {STUBS}/{FRESH}.md && rm {STUBS}/{FRESH}.md"
    ),
    "deleted_board": _in_a_copy(f"rm {BOARD}"),
    "deleted_log": _in_a_copy(f"rm -r {LOG}/{READY}"),
    "deleted_tip": _without_its_newest_event,
    "deleted_other_log": _in_a_copy(f"rm -r {LOG}/{POEM}"),
    "deleted_stub": _in_a_copy(f"rm {STUBS}/{STUB}.md"),
    "staged_log": _in_a_copy(f"git rm -rq {LOG}/{READY}"),
    "unreadable_log": _in_a_copy(f"chmod 000 {LOG}"),
    "unreadable_packet_log": _in_a_copy(f"chmod 000 {LOG}/{READY}"),
    "unreadable_stubs": _in_a_copy(f"chmod 000 {STUBS}"),
}
