"""`import workpacket`: what programs that run agents need, as functions with types."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import workpacket
from cli.commands import Commands
from git.scratch import git
from workpacket import WorkPacket, claim, harness, packets, start, submit, why
from workpacket.problem import WorkpacketError

NAME, OTHER = "WP-1-Greet-v1", "WP-1-Part-v1"


@pytest.fixture
def root(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKPACKET_ACTOR", "ann")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    assert commands("init", "--dialect", "plain").status == 0
    (commands.root / "src").mkdir()
    for title in ("Greet", "Part"):
        (commands.root / f"src/{title}").write_text("to do\n", "utf-8")
        told = ("--criterion", f"It {title}s.", "--prove", f"grep -q hello src/{title}", "--scope", f"src/{title}")
        more = ("--requirement", f"It {title}s.", "--refinement", "It gets the word hello.")
        assert commands("new", title, *told, *more).status == 0
    git(commands.root, "add", "-A")
    git(commands.root, "commit", "-qm", "x")
    return commands.root


def test_a_packet_goes_its_way_through_the_functions(root: Path) -> None:
    assert packets(root) == [
        WorkPacket(name, name[5:-3], "STUB", f".GOV/task_packets/{name}.md", ()) for name in (NAME, OTHER)
    ]
    assert why(NAME, root) == []
    started = start(NAME, root, actor="coder", commit=True)
    assert (started.id, started.holder, started.branch) == (NAME, "coder", f"wp/{NAME}")
    assert started.next.startswith("do the work")
    assert [one.id for one in packets(root, lane="IN_PROGRESS")] == [NAME]
    with pytest.raises(WorkpacketError) as refused:
        submit(NAME, root, actor="coder")
    assert [one.code for one in refused.value.problems] == ["test_failed"]
    (root / "src/Greet").write_text("hello\n", "utf-8")
    git(root, "commit", "-qam", "Work")
    done = submit(NAME, root, actor="coder", commit=True)
    assert (done.id, len(done.commit)) == (NAME, 40)
    assert "git merge" in done.next


def test_a_module_in_the_repository_is_not_imported(root: Path) -> None:
    (root / "json.py").write_text("open('owned', 'w').close()\nraise ImportError\n", "utf-8")
    assert why(NAME, root) == []
    assert not (root / "owned").exists()


def test_a_claim_of_someone_else_is_refused_with_the_command_that_leads_on(root: Path) -> None:
    start(NAME, root, actor="coder", commit=True)
    with pytest.raises(WorkpacketError) as refused:
        claim(NAME, root, actor="rival", branch="work")
    (condition,) = refused.value.problems
    assert (condition.code, refused.value.code) == ("claimed_by_other", "claimed_by_other")
    assert condition.hint.startswith("ask coder to run: ")
    assert refused.value.hint == condition.hint


def test_what_is_wrong_is_an_error_with_a_code(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(WorkpacketError) as unknown:
        why("WP-1-Missing-v1", root)
    assert unknown.value.code == "packet_unknown"
    with pytest.raises(WorkpacketError) as nobody:
        start(NAME, root, actor="")
    assert nobody.value.code == "actor_unknown"
    with pytest.raises(WorkpacketError) as nowhere:
        packets(tmp_path_factory.mktemp("empty"))
    assert nowhere.value.code == "no_repository"
    with pytest.raises(WorkpacketError):
        why("--help", root)


def test_a_command_that_does_not_answer_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkpacketError) as dead:
        why(NAME, root)
    assert (dead.value.code, dead.value.message) == ("internal_error", "exit status 1")


def test_the_functions_are_loaded_when_they_are_used() -> None:
    assert all(getattr(workpacket, name) is getattr(harness, name) for name in workpacket.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'approve'"):
        _ = workpacket.approve
    program = "import sys, workpacket; sys.exit('workpacket.harness' in sys.modules or 'subprocess' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
