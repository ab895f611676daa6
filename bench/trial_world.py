"""The repositories of the trial: a hub with a clone for each of its people and agents, and the scripted person.

The person approves, lands work, and types what an agent without a shell asks for. What the person does is counted
apart from what the agents do.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.sides import ROOT
from bench.timing import NotMeasured

PEOPLE: Final = ("ann", "bob")
AGENTS: Final = {"coder": "ann", "rival": "ann", "rex": "bob"}
EARLIER: Final = 80
PASSPHRASE: Final = "a passphrase"
# Imported by every Python that has this folder in its path: the clock of the trial, which can be moved forward; and the
# death of the next process that writes a transaction, after the first of its files.
_CLOCK: Final = """import os, signal, sys, time
_read, _file = time.time_ns, os.environ["TRIAL_CLOCK"]
def _later():
    with open(_file) as hours:
        return _read() + int(hours.read()) * 3600 * 10**9
time.time_ns = _later
_death = os.environ["TRIAL_DEATH"]
if os.path.exists(_death):
    _renamed = []
    def _die(event, words):
        if event == "os.rename":
            if _renamed and os.path.exists(_death):
                os.unlink(_death)
                os.kill(os.getpid(), signal.SIGKILL)
            if str(words[1]).endswith(".intent"):
                _renamed.append(words[1])
    sys.addaudithook(_die)
"""
_SIGNED: Final = """
[actors.bob]
kind = "person"
keys = ["{bob}"]

[actors.rex]
kind = "agent"
operator = "bob"
keys = ["{rex}"]
"""


class World:
    """One of the three repositories: `open` has no keys, `signed` and `full` ask for approvals and signed events."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.kind = kind
        self.done_by_person: Counter[str] = Counter()
        folder.mkdir(parents=True)
        self.hub = folder / "hub.git"
        self._make()

    def environment(self, name: str) -> dict[str, str]:
        kept = {key: text for key, text in os.environ.items() if not key.startswith(("WORKPACKET_", "GIT_", "SSH_"))}
        kept.pop("CI", None)
        paths = [str(self.folder / "clock"), str(ROOT / "tools"), *(path for path in sys.path if path)]
        return kept | {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_EDITOR": "true",
            "HOME": str(self.folder),
            "NO_COLOR": "1",
            "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
            "TRIAL_CLOCK": str(self.folder / "hours"),
            "TRIAL_DEATH": str(self.folder / "death"),
            "WORKPACKET_ACTOR": name,
            "XDG_CONFIG_HOME": str(self.folder / "keys" / AGENTS.get(name, name)),
        }

    def clone(self, name: str) -> Path:
        return self.folder / name

    def later(self) -> None:
        """Move the clock of this repository forward to the present, when every earlier claim has ended."""
        (self.folder / "hours").write_text("0", "utf-8")

    @contextmanager
    def deadly(self) -> Iterator[Callable[[], bool]]:
        """Kill the next command that writes, in the middle of what it writes; yield whether one was killed."""
        death = self.folder / "death"
        death.touch()
        yield lambda: not death.exists()
        death.unlink(missing_ok=True)

    # --- what programs do ---

    def run(self, name: str, *words: str, clone: str = "") -> str:
        """Run a program in someone's clone, by default their own. It is part of the setting, so it must succeed."""
        done = subprocess.run(
            words, cwd=self.clone(clone or name), env=self.environment(name), capture_output=True, text=True,
            check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            raise NotMeasured(f"{shlex.join(words)} in {name}: exit status {done.returncode}: {done.stderr[-600:]}")
        return done.stdout

    def git(self, name: str, *words: str) -> str:
        return self.run(name, "git", *words)

    def type(self, name: str, *words: str, clone: str = "") -> str:
        return self.run(name, sys.executable, "-m", "workpacket", *words, clone=clone)

    def commit(self, name: str, message: str) -> None:
        self.git(name, "add", "--all")
        if self.git(name, "status", "--porcelain") or (self.clone(name) / ".git/MERGE_HEAD").exists():
            self.git(name, "commit", "--quiet", "--message", message)

    # --- the setting ---

    def _make(self) -> None:
        (self.folder / "clock").mkdir()
        (self.folder / "clock/sitecustomize.py").write_text(_CLOCK, "utf-8")
        # git dates its commits by its own clock, so no event may be dated later: the trial begins in the past.
        (self.folder / "hours").write_text(str(-EARLIER), "utf-8")
        self.clone("ann").mkdir()
        self.git("ann", "init", "--quiet", "--initial-branch=main")
        self._introduce("ann")
        self.type("ann", "init", "--dialect", "plain", "--form", "full" if self.kind == "full" else "light")
        specification = "# Specification\n\n## 1 Main body\n\n### 1.1 Modules\nEach module answers with its number.\n"
        (self.clone("ann") / ".GOV/spec/SPEC_v1.md").write_text(f"{specification}\n## 2 Roadmap\nMore of them.\n")
        with (self.clone("ann") / ".gitignore").open("a", encoding="utf-8") as ignored:
            ignored.write("__pycache__/\n")
        if self.kind != "open":
            self._sign()
        self.commit("ann", "Begin to govern")
        self.git("ann", "clone", "--quiet", "--bare", ".", str(self.hub))
        self.git("ann", "remote", "add", "origin", str(self.hub))
        self.git("ann", "fetch", "--quiet")
        self.git("ann", "branch", "--quiet", "--set-upstream-to=origin/main")
        for name in ("bob", *AGENTS):
            self.run("ann", "git", "clone", "--quiet", str(self.hub), str(self.clone(name)))
            self._introduce(name)

    def _introduce(self, name: str) -> None:
        for key, text in (("user.name", name), ("user.email", f"{name}@example.org"), ("merge.conflictstyle", "merge")):
            self.git(name, "config", key, text)

    def _sign(self) -> None:
        """Let ann approve, and bob judge; each of the agents gets its own key for events."""
        approval = self.folder / "keys/approval"
        approval.parent.mkdir()
        self.run("ann", "ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-C", "ann", "-f", str(approval))
        self.type("ann", "key", "init", "--event")
        for name in ("coder", "rival"):
            self.type("ann", "key", "init", "--agent", name)
        found = {}
        for words in (("--event", "--as", "bob"), ("--agent", "rex")):
            told = self.type("bob", "key", "init", *words, clone="ann")
            found[words[-1]] = re.findall(r'"(SHA256:[^"]+)"', told)[0]
        self.type("ann", "policy", "trust", "--key", str(approval))
        policy = self.clone("ann") / ".GOV/policy/policy.toml"
        text = policy.read_text("utf-8")
        if self.kind == "signed":
            # Agents judge without a person: the policy has no gate for the verdict.
            text = re.sub(r"\[approvals\.gates\.verdict\]\n(?:.+\n)+\n", "", text)
        policy.write_text(text + _SIGNED.format(**found), "utf-8")

    # --- what the person does ---

    def approve(self, packet: str, *options: str) -> None:
        """Read, confirm and sign at a terminal, in the person's own clone, and commit the approval."""
        from guided_tour.terminal import Answer, at_terminal

        self.done_by_person["approvals"] += 1
        key = ("--key", str(self.folder / "keys/approval"))
        gate = options[options.index("--gate") + 1] if "--gate" in options else "activation"
        command = [sys.executable, "-m", "workpacket", "approve", packet, *options, *key]
        typed = f"APPROVE {'REFINEMENT' if gate == 'activation' else gate.upper()} {packet}"
        answers = [Answer("type: ", typed), Answer("Enter passphrase", PASSPHRASE)]
        shown = at_terminal(command, self.clone("ann"), answers, self.environment("ann"))
        if shown.status:
            raise NotMeasured(f"approve {packet}: exit status {shown.status}: {shown.screen[-600:]}")
        self.commit("ann", f"Approve {packet}")

    def merge_main(self, name: str) -> None:
        """Merge main into the branch of someone's clone; conflicts are left for them to settle."""
        words = ["git", "merge", "--quiet", "--no-edit", "origin/main"]
        subprocess.run(words, cwd=self.clone(name), env=self.environment(name), capture_output=True, check=False)

    def land(self, branch: str) -> str:
        """Merge a branch of the hub into its main if CI accepts it; return what git or CI said if it does not land."""
        self.done_by_person["landings"] += 1
        self.git("ann", "pull", "--quiet", "--ff-only")
        self.git("ann", "fetch", "--quiet")
        done = subprocess.run(
            ["git", "merge", "--quiet", "--no-ff", "--no-edit", f"origin/{branch}"], cwd=self.clone("ann"),
            env=self.environment("ann"), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            self.git("ann", "merge", "--abort")
            return done.stdout + done.stderr
        words = [sys.executable, "-m", "workpacket", "check", "--base", "origin/main"]
        checked = subprocess.run(words, cwd=self.clone("ann"), env=self.environment("ann"), capture_output=True,
                                 text=True, check=False)  # fmt: skip
        if checked.returncode:
            self.git("ann", "reset", "--quiet", "--hard", "origin/main")
            return checked.stdout + checked.stderr
        self.git("ann", "push", "--quiet", "origin", "main")
        return ""

    def lane(self, packet: str) -> str:
        return str(json.loads(self.type("ann", "show", packet, "--json"))["data"]["lane"])
