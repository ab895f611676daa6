"""Plays a case: steps in a small language, then what a required check says of each landing.

README.md lists the steps. A case is refused if `check --base` or `approvals verify --base` refuses one of its landings,
as a fresh checkout would show it; it is accepted if both accept every one.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pwd
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from git.scratch import copy_of
from guided_tour.terminal import at_terminal
from lifecycle.governed import Quiet, Result
from lifecycle.signed import NAME, OTHER, Signed
from shell.approvals.deciding import digest_of, drafted, revocation, written
from trust.stages import GATES, NO_WAIVER, PEOPLE, Stage, Stages, opened
from workpacket.approvals.envelope import pae, write_envelope
from workpacket.approvals.sshsig import SshSignature, read_signature
from workpacket.ledger.log import EventWriter, NewLogEvent, next_event
from workpacket.model.canonical import canonical_bytes
from workpacket.model.events import Actor, ChangedFile
from workpacket.model.plan import digest
from workpacket.problem import WorkpacketError
from workpacket.shell.keys import make_event_key, sign

LANDINGS: Final = ("merge", "squash", "rebase")
SHORT: Final = {
    "{P}": NAME,
    "{Q}": OTHER,
    "{PB}": f"wp/{NAME}",
    "{PACKET}": f".GOV/task_packets/{NAME}.md",
    "{STUB}": f".GOV/task_packets/stubs/{NAME}.md",
    "{REFINEMENT}": f".GOV/refinements/{NAME}.md",
    "{LOG}": f".GOV/log/{NAME}",
    "{POLICY}": ".GOV/policy/policy.toml",
    "{SIGNERS}": ".GOV/policy/allowed_signers",
    "{REVOKED}": ".GOV/policy/revoked_keys",
}


class Broken(Exception):
    """A case cannot be played: its data is wrong, not the product."""


@dataclass(frozen=True)
class Case:
    """One line of a list. `how` are the landings that it is played with, in place of `{how}`."""

    id: str
    title: str
    stage: str
    steps: tuple[str, ...]
    expect: str
    how: tuple[str, ...] = ("merge",)
    codes: tuple[str, ...] = ()
    gates: str = "all"

    def __post_init__(self) -> None:
        assert self.expect in {"refused", "accepted", "as said"}, self


@dataclass
class Outcome:
    """What came of it: for each landing whether it was accepted, and all codes of errors that were said."""

    landings: list[bool] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    unkept: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    stopped: str = ""

    def fits(self, case: Case) -> bool:
        """Whether the product does what the case expects."""
        if self.unkept or "internal_error" in self.codes:
            return False
        if case.expect == "as said":
            return not self.stopped
        refused = not all(self.landings)
        if case.expect == "accepted":
            return not refused
        return refused and (not case.codes or bool(self.codes & set(case.codes)))


def read_cases(path: Path) -> list[Case]:
    lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
    cases = []
    for line in lines:
        value: dict[str, Any] = json.loads(line)
        value |= {key: tuple(value[key]) for key in ("steps", "how", "codes") if key in value}
        cases.append(Case(**value))
    return cases


class Table:
    """Where cases are played: the stages made once, a copy for each case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stages = {
            "all": Stages(folder / "stages", GATES),
            "no waiver": Stages(folder / "stages-no-waiver", NO_WAIVER),
            "none but activation": Stages(folder / "stages-few", {k: GATES[k] for k in ("activation", "policy")}),
        }
        self._count = 0

    def play(self, case: Case, how: str) -> Outcome:
        stage = self._stages[case.gates].stage(case.stage)
        self._count += 1
        folder = self._folder / f"case-{self._count}"
        copy_of(stage.folder, folder)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("PATH", os.environ["PATH"])
                world = World(opened(Stage(folder, stage.now, stage.looks), patch))
                for step in case.steps:
                    if not world.step(step.replace("{how}", how)):
                        break
                return world.outcome
        finally:
            shutil.rmtree(folder)


class World:
    """The repository of one case while it is played."""

    def __init__(self, signed: Signed) -> None:
        self.signed = signed
        self.governed: Quiet = signed.governed  # type: ignore[assignment]  # `opened` makes a quiet one
        self.root = self.governed.root
        self.outcome = Outcome()
        self._said: dict[str, str] = {}
        self._environment: dict[str, str] = {}

    def step(self, line: str) -> bool:
        """Whether the case goes on: what the product refuses a person at once is a refusal like any other."""
        for short, text in SHORT.items():
            line = line.replace(short, text)
        for name in sorted(self._said, key=len, reverse=True):
            line = line.replace(f"${name}", self._said[name])
        verb, *words = shlex.split(line)
        try:
            getattr(self, f"_{verb.replace('-', '_')}")(*[word.replace("\\n", "\n") for word in words])
        except WorkpacketError as caught:
            self.outcome.landings.append(False)
            self.outcome.codes.add(caught.code)
            self.outcome.stopped = f"{line}: {caught}"
            return False
        except (
            AssertionError,
            AttributeError,
            TypeError,
            ValueError,
            OSError,
            subprocess.CalledProcessError,
        ) as caught:
            said = caught.stderr if isinstance(caught, subprocess.CalledProcessError) else ""
            raise Broken(f"{line}: {type(caught).__name__} {str(caught)[:600]} {said}") from caught
        return True

    # --- git ---

    def _branch(self, name: str, start: str = "main") -> None:
        self._git("switch", "--quiet", "--create", name, start)

    def _on(self, name: str) -> None:
        self._git("switch", "--quiet", name)

    def _commit(self, message: str = "work") -> None:
        self.governed.commit(message)

    def _git(self, *words: str) -> None:
        self.governed.git(*words)

    def _let(self, name: str, kind: str, what: str) -> None:
        """The commit of a revision, the digest of a file's bytes, or the file of an event."""
        if kind == "rev":
            self._said[name] = self.governed.git("rev-parse", what)
        elif kind == "sha":
            self._said[name] = digest((self.root / what).read_bytes())
        elif kind == "line":
            self._said[name] = self.signed.line_of(PEOPLE[what])
        elif kind == "key":
            self._said[name] = make_event_key(what, "event").public.fingerprint
        elif kind == "head":
            self._said[name] = self.governed.state(what).heads[0]
        elif kind == "contract":
            self._said[name] = self._contract(what)
        elif kind == "lease":
            lease = self.governed.state(what).lease
            assert lease is not None
            self._said[name] = lease.lease
        elif kind == "attest":
            packet, _, event = what.partition(":")
            self._said[name] = [one.attest[0] for one in self.governed.state(packet).history if one.type == event][-1]
        elif kind == "last":
            packet, _, event = what.partition(":")
            self._said[name] = [one.id for one in self.governed.state(packet).history if one.type == event][-1]
        else:
            raise AssertionError(kind)

    def _contract(self, packet: str) -> str:
        """The digest of the contract that the packet says now."""
        result = self.governed("packet", "contract", packet, "--canonical")
        assert result.status == 0, result
        return digest(result.out.encode())

    # --- files ---

    def _write(self, path: str, text: str) -> None:
        self.governed.write(path, text)

    def _append(self, path: str, text: str) -> None:
        before = self.governed.read(path) if (self.root / path).exists() else ""
        self.governed.write(path, before + text)

    def _replace(self, path: str, old: str, new: str) -> None:
        self.governed.replace(path, old, new)

    def _delete(self, path: str) -> None:
        target = self.root / path
        shutil.rmtree(target) if target.is_dir() and not target.is_symlink() else target.unlink()

    def _rename(self, old: str, new: str) -> None:
        (self.root / new).parent.mkdir(parents=True, exist_ok=True)
        (self.root / old).rename(self.root / new)

    def _executable(self, path: str) -> None:
        target = self.root / path
        target.chmod(target.stat().st_mode | stat.S_IXUSR)

    def _link(self, path: str, target: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).unlink(missing_ok=True)
        (self.root / path).symlink_to(target)

    def _gitlink(self, path: str) -> None:
        """A submodule's entry, committed with the rest by `commit-index`."""
        self._git("update-index", "--add", "--cacheinfo", f"160000,{self.governed.git('rev-parse', 'HEAD')},{path}")

    def _blob(self, path: str, codec: str) -> None:
        """Put what the file says, in another encoding, into the index, as `working-tree-encoding` would convert it."""
        data = (self.root / path).read_bytes().decode(codec).encode()
        done = subprocess.run(
            ["git", "hash-object", "-w", "--stdin", "--no-filters"],
            cwd=self.root, input=data, capture_output=True, check=True,
        )  # fmt: skip
        self._git("update-index", "--add", "--cacheinfo", f"100644,{done.stdout.decode().strip()},{path}")

    def _commit_index(self, message: str = "work") -> None:
        self._git("commit", "--quiet", "--message", message)

    def _write_git(self, path: str, text: str) -> None:
        """A file of the clone itself, which no commit brings."""
        place = self.root / ".git" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")

    def _copy(self, old: str, new: str) -> None:
        (self.root / new).write_bytes((self.root / old).read_bytes())

    def _env(self, name: str, value: str) -> None:
        """A variable that the check of a landing finds; a path in it begins at the repository."""
        path = self.root / value
        self._environment[name] = str(path) if path.exists() else value

    # --- people, keys and commands ---

    def _do(self, *words: str) -> None:
        result = self.governed(*words)
        assert result.status != 2, result  # a command that is typed wrongly refuses nothing
        if result.status != 0:
            code = (re.findall(r"\(([a-z_]+)\)$", result.err, re.MULTILINE) or ["command_refused"])[0]
            raise WorkpacketError(code, f"{words}: {result.err}")

    def _try(self, *words: str) -> None:
        """A command that the product may refuse some day."""
        self.governed(*words)

    def _must(self, status: str, *words: str) -> None:
        """What the product is expected to answer: an exit status, or several with `|`."""
        result: Result = self.governed(*words)
        if str(result.status) not in status.split("|"):
            self.outcome.unkept.append(f"{' '.join(words)}: {result.status}, expected {status}")

    def _stub(self, name: str, scope: str) -> None:
        self.governed.stub(name)
        self.governed.replace(f".GOV/task_packets/stubs/{name}.md", "`src/`", f"`{scope}`")

    def _driver(self) -> None:
        """The merge driver that a clone configures once."""
        self._git(
            "config", "merge.workpacket.driver", f"{sys.executable} -m workpacket board merge-driver %O %A %B %P %L"
        )

    def _refine(self, name: str) -> None:
        self.governed.refine(name)

    def _sign(self, name: str, who: str, gate: str, packet: str, *terms: str) -> None:
        """Remembers the digest of the envelope."""
        options = dict(term.split("=", 1) for term in terms)
        decision = options.pop("decision", "approve")
        report = options.pop("report", "docs/reports/greeting.md")
        if gate == "verdict" and options["verdict"] != "CHANGES" and (self.root / report).exists():
            # As `approve --report` does; changes are asked for with a reference.
            options["report"] = f"{report} sha256:{digest((self.root / report).read_bytes())}"
        key = self.signed._key(PEOPLE[who])
        draft = drafted(self.root, key, self.governed.clock(), packet, gate, decision, terms=options)
        self._said[name] = digest_of(written(self.root, key, self.governed.clock(), draft))

    def _forge(self, name: str, who: str, by: str, gate: str, packet: str, *terms: str) -> None:
        """An envelope that claims to be of `who`, signed with the key of `by`."""
        before = set((self.root / ".GOV/attestations").glob("*"))
        options = dict(term.split("=", 1) for term in terms)
        self.signed.forged(self.signed.draft(gate, PEOPLE[who], name=packet, **options), PEOPLE[by])
        (new,) = set((self.root / ".GOV/attestations").glob("*")) - before
        self._said[name] = new.name.partition(".")[0]

    def _craft(self, name: str, who: str, envelope: str, *changes: str) -> None:
        """An envelope like another one, its statement changed (`predicate.gate=zzz`) and signed with a key of `who`."""
        old = json.loads((self.root / f".GOV/attestations/{envelope}.dsse.json").read_bytes())
        statement = json.loads(base64.b64decode(old["payload"]))
        for change in changes:
            place, _, said = change.partition("=")
            *folders, last = place.split(".")
            target = statement
            for folder in folders:
                target = target[int(folder)] if isinstance(target, list) else target[folder]
            target[last] = json.loads(said) if said[:1] in '["{' else said
        payload = canonical_bytes(statement)
        signature = sign(pae(payload), str(self.signed._key(PEOPLE[who])))
        parsed = read_signature(signature)
        assert isinstance(parsed, SshSignature)
        file, data = write_envelope(payload, parsed.key.fingerprint, signature)
        self.governed.write(f".GOV/attestations/{file}", data.decode())
        self._said[name] = file.partition(".")[0]

    def _revoke(self, who: str, envelope: str) -> None:
        key = self.signed._key(PEOPLE[who])
        written(self.root, key, self.governed.clock(), revocation(self.root, key, self.governed.clock(), envelope))

    def _event(self, name: str, kind: str, packet: str, actor: str, data: str, *more: str) -> None:
        """An event written by hand, well formed and rightly named; upon all heads, or `after=ID,ID`."""
        options = dict(one.split("=", 1) for one in more)
        value = json.loads(data)
        if "moves" in value:
            value["moves"] = sorted(value["moves"])
        after = options.get("after")
        state = self.governed.state(packet) if after != "" else None
        wanted = state.heads if state is not None and after is None else (after or "").split(",")
        upon = [event for event in state.history if event.id in wanted] if state is not None else []
        at = options.get("at", f"{self.governed.clock().now}")
        attest = tuple(filter(None, options.get("attest", "").split(",")))
        subjects = [self._subject(path) for path in filter(None, options.get("subjects", "").split(","))]
        writer = EventWriter(Actor(actor, "agent"), at, "0190a5de-ac96-774b-bcce-00000000ffff", "x")
        event = next_event(writer, packet, NewLogEvent(kind, value, subjects, attest), after=upon)
        self.governed.write(event.path, event.encode().decode())
        self._said[name] = event.id

    def _settle(self, name: str, packet: str, lane: str, attest: str) -> None:
        """The settlement of all latest moves in this lane, with an envelope, written by hand."""
        moves = [move.id for move in self.governed.state(packet).latest_moves]
        data = json.dumps({"lane_from": "FORKED", "lane_to": lane, "moves": moves, "reason": "x"})
        self._event(name, "fork.resolved", packet, "agent", data, f"attest={attest}")

    def _subject(self, path: str) -> ChangedFile:
        """The file as it was at the last commit, and as it is; `PATH@OLD@NEW` says other digests."""
        if "@" in path:
            path, old_digest, new_digest = path.split("@")
            return ChangedFile(path, old_digest, new_digest)
        old = subprocess.run(["git", "show", f"HEAD:{path}"], cwd=self.root, capture_output=True, check=False)
        return ChangedFile(
            path, digest(old.stdout) if old.returncode == 0 else None, digest((self.root / path).read_bytes())
        )

    # --- what a person is shown ---

    def _screen(self, which: str, text: str, who: str, *words: str) -> None:
        """Whether a command at a terminal shows a text (`has`, `lacks`), or no longer line than so (`narrow`)."""
        key = ("--key", str(self.signed._key(PEOPLE[who])))
        command = [sys.executable, "-c", "from workpacket.cli.main import console; console()", *words, *key]
        environment = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "80", "PYTHONPATH": ":".join(sys.path)}
        screen = at_terminal(command, self.root, [("type: ", "no")], environment).screen
        assert "type: " in screen, screen
        if which == "narrow":
            kept = all(len(line) <= int(text) for line in screen.splitlines())
        else:
            kept = (text in screen) == (which == "has")
        if not kept:
            self.outcome.unkept.append(f"the screen of {' '.join(words)} {which} not {text!r}")

    def _lacks(self, text: str, *words: str) -> None:
        """That no output of a command holds a text."""
        result = self.governed(*words)
        if text in result.out + result.err:
            self.outcome.unkept.append(f"{' '.join(words)} says {text!r}")

    def _says(self, text: str, *words: str) -> None:
        """That the output of a command holds a text."""
        result = self.governed(*words)
        if text not in result.out + result.err:
            self.outcome.unkept.append(f"{' '.join(words)} does not say {text!r}")

    def _told(self, text: str) -> None:
        """That the check of a landing said a text."""
        if text not in "\n".join(self.outcome.messages):
            self.outcome.unkept.append(f"no landing was told {text!r}")

    def _shipped(self, path: str, text: str) -> None:
        """That a file of this project holds a text."""
        if text not in (Path(__file__).parents[2] / path).read_text("utf-8"):
            self.outcome.unkept.append(f"{path} does not say {text!r}")

    def _lie(self, table: str) -> None:
        """Let the cache in `.git` say that nothing is wrong."""
        for path in (self.root / ".git/workpacket/cache").glob("*.sqlite"):
            with contextlib.closing(sqlite3.connect(path)) as connection, connection:
                kind, lie = {"results": ("examined", no_findings), "shown": ("output", nothing_wrong)}[table]
                rows = connection.execute("SELECT key, value FROM kept WHERE kind = ?", (kind,)).fetchall()
                for key, value in rows:
                    told = (lie(value), kind, key)
                    connection.execute("UPDATE kept SET value = ? WHERE kind = ? AND key = ?", told)

    def _keygen_of_the_tree(self) -> None:
        """A program called ssh-keygen in the work tree, first in the person's PATH."""
        real = shutil.which("ssh-keygen")
        self.governed.write("bin/ssh-keygen", f'#!/bin/sh\nexec {real} "$@"\n')
        self._executable("bin/ssh-keygen")
        os.environ["PATH"] = f"{self.root / 'bin'}:{os.environ['PATH']}"

    def _keygen_elsewhere(self, folder_mode: str, file_mode: str = "755") -> None:
        """A program called ssh-keygen beside the repository, of a group with another account, first in the PATH."""
        real = shutil.which("ssh-keygen")
        folder = self.root.parent / "programs"
        folder.mkdir()
        tool = folder / "ssh-keygen"
        tool.write_text(f'#!/bin/sh\nexec {real} "$@"\n', "utf-8")
        group = next(account.pw_gid for account in pwd.getpwall() if account.pw_uid not in {0, os.getuid()})
        for place, mode in ((tool, file_mode), (folder, folder_mode)):
            os.chown(place, -1, group)
            place.chmod(int(mode, 8))
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"

    def _wait(self, days: str) -> None:
        self.governed.clock.turn(days=float(days))

    # --- landing ---

    def _land(self, branch: str, how: str, base: str = "main") -> None:
        """The branch arrives on the base as a host would do it, is judged, and stays there if it is accepted."""
        how, _, clone = how.partition("-")
        before = self.governed.git("rev-parse", base)
        tip = self.governed.git("rev-parse", branch)
        self._git("checkout", "--quiet", "--detach", before)
        if how == "merge":
            self._git("merge", "--quiet", "--no-ff", "--message", f"Merge {branch}", tip)
        elif how == "squash":
            self._git("merge", "--quiet", "--squash", tip)
            self._git("commit", "--quiet", "--allow-empty", "--message", f"Squash {branch}")
        elif how == "ff":
            self._git("merge", "--quiet", "--ff-only", tip)
        elif how == "rebase":
            self._git("checkout", "--quiet", "--detach", tip)
            self._git("rebase", "--quiet", "--empty=keep", "--keep-empty", before)
        else:
            raise AssertionError(how)
        if clone:
            self._forget(base)
        self._judge(before)
        if self.outcome.landings[-1]:
            self._git("update-ref", f"refs/heads/{base}", "HEAD")
        self._git("checkout", "--quiet", "--force", base)

    def _judged(self, base: str) -> None:
        """HEAD is judged as it is against a base that is named, and does not land."""
        self._judge(base)

    def _forget(self, base: str) -> None:
        """As a clone of the base is, made after the branches of what landed were deleted."""
        names = self.governed.git("for-each-ref", "--format=%(refname)").split()
        for name in names:
            if name != f"refs/heads/{base}":
                self._git("update-ref", "-d", name)
        for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "REBASE_HEAD", "AUTO_MERGE", "CHERRY_PICK_HEAD"):
            (self.root / ".git" / name).unlink(missing_ok=True)
        self._git("reflog", "expire", "--expire=now", "--all")
        self._git("gc", "--quiet", "--prune=now")

    def _judge(self, base: str) -> None:
        """As a job does that has just checked out the commit, on a machine that has seen no base before."""
        shutil.rmtree(Path(os.environ["XDG_CONFIG_HOME"]), ignore_errors=True)
        self._check_out_afresh()
        accepted = True
        for words in (("check", "--base", base), ("approvals", "verify", "--base", base)):
            with pytest.MonkeyPatch.context() as patch:
                for name, value in self._environment.items():
                    patch.setenv(name, value)
                result = self.governed(*words, "--json")
            accepted &= result.status == 0
            with contextlib.suppress(json.JSONDecodeError):
                answer = json.loads(result.out)
                self.outcome.codes |= codes_in(answer)
                self.outcome.messages += [str(each.get("message")) for each in answer.get("findings", ())]
        self.outcome.landings.append(accepted)

    def _check_out_afresh(self) -> None:
        for entry in self.root.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        (self.root / ".git/index").unlink()
        self._git("reset", "--quiet", "--hard")


def no_findings(value: str) -> str:
    """The result of one file as the cache keeps it, findings first, each part on a line."""
    return f"[]\n{value.partition(chr(10))[2]}"


def nothing_wrong(value: str) -> str:
    """An output as the cache keeps it: the lengths of its parts, then status, text and what they rest on."""
    lengths, _, parts = value.partition("\n")
    status, text, *others = lengths.split(" ")
    return " ".join(("1", "0", *others)) + "\n0" + parts[int(status) + int(text) :]


def codes_in(answer: dict[str, Any]) -> set[str]:
    found = [one for one in answer.get("findings", ()) if one.get("severity", "error") == "error"]
    return {one["code"] for one in found if "code" in one} | {answer[key] for key in ("code",) if answer.get(key)}
