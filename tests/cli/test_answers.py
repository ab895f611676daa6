"""Every command has a schema of what it answers with --json, and every form in it is one that a command gives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from langgraph.checkpoint.memory import InMemorySaver

from answers import ANSWERS, WRITE, common_forms, form_of, forms_of, load, missing, own_forms, path_of, write_examples
from approvals.authority import Ci
from bridges.samples import SAMPLES, STEP_EVENT, lines
from bridges.scopes import scoped
from cli.commands import Result
from cli.places import Place
from git.scratch import git, make_repository
from langgraph_saver.other_savers import converse, fill
from lifecycle.governed import GATE, STAGING, TOKENS_COUNT, Governed, govern
from lifecycle.signed import NAME, OTHER, PACKET, VICTOR, Signed
from postgres.server import Server
from shell.approvals.story import ALICE, WP, Story, begin
from workpacket.approvals.sshsig import NAMESPACE
from workpacket.cli.commands import COMMANDS, resolve
from workpacket.cli.views import WORK_KINDS
from workpacket.runtime import Runtime
from workpacket.runtime.model_sessions.session import open_session
from workpacket.runtime.stores.place import store_path

CI = Ci()
THIRD = "WP-1-Third-v1"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
STUB = f".GOV/task_packets/stubs/{NAME}.md"
NAMES = sorted({*COMMANDS, "create-task-packet"})
FILES = sorted(path.name.removesuffix(".schema.json") for path in ANSWERS.iterdir())


@pytest.mark.parametrize("command", NAMES)
def test_every_command_has_a_schema(command: str) -> None:
    assert path_of(command).exists(), missing(command)


def test_every_schema_has_a_command() -> None:
    assert set(FILES) - set(NAMES) == {"common"}


@pytest.mark.parametrize("name", FILES)
def test_a_schema_is_sound_closed_and_described(name: str) -> None:
    schema = load(path_of(name))
    Draft202012Validator.check_schema(schema)
    assert schema["$id"].endswith(f"/commands/{name}.schema.json")
    assert schema["title"]
    assert schema["description"]
    assert list(faults(schema.get("$defs", {}), "#/$defs")) == []


def faults(definitions: dict[str, Any], place: str) -> Iterator[str]:
    """Objects with listed properties that let others in, and properties of which nobody says what they are."""
    for name, schema in definitions.items():
        where = f"{place}/{name}"
        if "$ref" in schema:
            continue
        if "description" not in schema and "title" not in schema:
            yield f"{where} is not described"
        for part in (schema, schema.get("items", {})):
            if "properties" in part:
                if part.get("additionalProperties") is not False:
                    yield f"{where} is not closed"
                yield from faults(part["properties"], where)


def test_list_answers_with_every_kind_that_it_lists(place: Place) -> None:
    package = "---\nwork_package_id: WP07\ntitle: Reader\nlane: planned\n---\n\n# WP07\n"
    files = {
        "kitty-specs/012-parser/tasks/WP07-reader.md": package,
        f".GOV/task_packets/{NAME}.md": f"# Task Packet: {NAME}\n",
        f".GOV/task_packets/stubs/{OTHER}.md": f"# Work Packet Stub: {OTHER}\n",
    }
    for path, text in files.items():
        (place.root / path).parent.mkdir(parents=True, exist_ok=True)
        (place.root / path).write_text(text, "utf-8")

    answer = place.json("list")

    assert form_of(answer) == "shown"
    assert {work["kind"] for work in answer["data"]["work"]} == set(WORK_KINDS)
    kinds = load(path_of("list"))["$defs"]["shown"]["properties"]["work"]["items"]["properties"]["kind"]["enum"]
    assert set(kinds) == set(WORK_KINDS)


# ---- the commands ------------------------------------------------------------------------------------------------


class Reached:
    """Calls commands with --json, holds every answer against its schema, and remembers which forms there were."""

    def __init__(self) -> None:
        self.forms: dict[str, set[str]] = defaultdict(set)
        self.answers: list[dict[str, Any]] = []

    def __call__(self, run: Callable[..., Any], *words: str) -> dict[str, Any]:
        at = words.index("--") if "--" in words else len(words)
        said = run(*words[:at], "--json", *words[at:])
        answer: dict[str, Any] = json.loads(said.stdout if hasattr(said, "stdout") else said.out)
        name, _ = resolve(words)
        assert answer["command"] == name
        self.forms[name].add(form_of(answer))
        self.answers.append(answer)
        return answer


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")
def test_every_command_gives_every_form_that_its_schema_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = Reached()
    for number, story in enumerate((packets, missions, hand_edits, approvals, runs, on_a_server, batches)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with monkeypatch.context() as patch:
            story(reached, folder, patch, capsys)
    for command in NAMES:
        assert set(forms_of(command)) - reached.forms[command] - {"failed", "refused", "stopped"} == set(), command
    shared = set().union(*reached.forms.values())
    assert {"failed", "refused", "stopped"} <= shared
    if os.environ.get("WORKPACKET_WRITE_EXAMPLES"):
        write_examples(reached.answers, str(tmp_path))


@pytest.mark.parametrize("command", NAMES)
def test_a_schema_has_an_example_of_every_form(command: str) -> None:
    examples = load(path_of(command)).get("examples", [])
    forms = {name: forms_of(command)[name] for name in own_forms(command)}
    without = [name for name, form in forms.items() if not any(form.is_valid(example) for example in examples)]
    assert without == [], f"write them in {command}.schema.json: {WRITE}"


@pytest.mark.parametrize("command", NAMES)
def test_every_example_is_an_answer_that_its_schema_accepts(command: str) -> None:
    for example in load(path_of(command)).get("examples", []):
        assert any(form.is_valid(example) for form in forms_of(command).values()), example


@pytest.mark.parametrize("form", ["failed", "refused", "stopped"])
def test_a_form_of_many_commands_has_an_example(form: str) -> None:
    examples = load(path_of("common"))["$defs"][form].get("examples", [])
    assert examples, f"write one for {form}: {WRITE}"
    for example in examples:
        common_forms()[form].validate(example)


def beginning(reached: Reached, governed: Governed) -> None:
    """Governance, commands that only look, and two packets that are ready."""
    reached(governed, "init")
    reached(governed, "init", "--check")
    governed.begin(TOKENS_COUNT + STAGING + CI.policy())
    for words in (["check"], ["fmt", "--diff"], ["adopt"], ["policy", "show"], ["policy", "test"], ["log", "verify"]):
        reached(governed, *words)
    reached(governed, "explain", "file_unreadable")
    reached(governed, "explain", "--all")
    reached(governed, "explain", "no_such_code")
    reached(governed, "help", "schema")
    reached(governed, "help", "schema", "commands/cancel")
    reached(governed, "help", "completion", "bash")
    reached(governed, "audit", "justfile", ".GOV/gov.just")
    reached(governed, "new", NAME, "--what", "Greet", "--why", "People like it")
    reached(governed, "new", NAME, "--what", "Greet", "--why", "People like it")
    (governed.root / f".GOV/task_packets/stubs/{NAME}.md").unlink()
    shutil.rmtree(governed.root / f".GOV/log/{NAME}")
    governed.done("board", "sync")
    governed.activate(OTHER)
    governed.stub(NAME)
    reached(governed, "create-task-packet", NAME)
    reached(governed, "refine", NAME)
    (governed.root / f".GOV/refinements/{NAME}.md").unlink()
    governed.refine(NAME)
    reached(governed, "refine", NAME, "--present")
    governed.sign(NAME)
    governed.commit("signed")
    reached(governed, "create-task-packet", NAME)
    governed.git("checkout", "--quiet", ".GOV")
    governed.git("clean", "--quiet", "-fd", ".GOV")
    reached(governed, "packet", "activate", NAME)
    governed.replace(PACKET, "TERMS: TODO", "TERMS: x")
    governed.commit("activated")
    reached(governed, "report", "pr", "--base", "HEAD")
    governed.write("todo.md", "- [ ] Sing\n")
    reached(governed, "new", "--from", "todo.md", "--form", "full")
    governed.git("clean", "-qfd")
    governed.git("checkout", "-q", ".")
    for words in (["status"], ["next"], ["guard", "README.md"], ["prime"], ["why", NAME], ["list"],
                  ["search", NAME], ["show", NAME], ["log", "show", NAME], ["board", "registry", "show"],
                  ["board", "registry", "sync"], ["log", "recover"]):  # fmt: skip
        reached(governed, *words)


def attested(reached: Reached, governed: Governed) -> None:
    """CI replays the submission, attests what it found, and that is recorded."""
    folder = governed.root.parent
    governed.done("evidence", "replay", NAME, "--yes", "--statements", str(folder))
    statement, bundle, file = folder / f"{NAME}.json", folder / "bundle.json", str(folder / "attested.json")
    bundle.write_text(json.dumps(CI.bundle(statement.read_bytes())))
    reached(governed, "evidence", "attest", str(bundle), "--out", file)
    reached(governed, "evidence", "verify", NAME, file)
    reached(governed, "evidence", "record", NAME, file, "--as", "coder")


def listens(reached: Reached, governed: Governed) -> None:
    """The one command that answers before it ends: it is ended as soon as it has."""

    def until_it_listens(*words: str) -> Any:
        with subprocess.Popen(
            [sys.executable, "-m", "workpacket", *words], cwd=governed.root, text=True, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as process:  # fmt: skip
            assert process.stdout is not None
            line = process.stdout.readline()
            process.terminate()
        return subprocess.CompletedProcess(words, process.returncode, line)

    reached(until_it_listens, "board", "serve")


def packets(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One packet from nothing to VALIDATED, and what may happen to others on the way."""
    governed = govern(folder, patch, capsys)
    beginning(reached, governed)
    listens(reached, governed)
    reached(governed, "packet", "prepare", OTHER, "--for", "coder")
    reached(governed, "claim", OTHER, "--as", "coder")
    reached(governed, "packet", "release", OTHER, "--reason", "x", "--as", "coder")
    reached(governed, "claim", OTHER, "--as", "coder")
    reached(governed, "packet", "handover", OTHER, "--to", "bob", "--reason", "x", "--as", "coder")
    reached(governed, "block", OTHER, "--reason", "no water", "--until", "rain")
    reached(governed, "packet", "unblock", OTHER)
    reached(governed, "start", OTHER, "--as", "bob")
    governed.git("switch", "--quiet", "main")
    reached(governed, "start", OTHER, "--as", "bob")
    governed.work(NAME)
    links(reached, governed)
    reached(governed, "submit", NAME, "--as", "coder", "--check", "--prove", "all=true")
    reached(governed, "submit", NAME, "--as", "coder", "--record-only", "--prove", "1=true")
    reached(governed, "submit", NAME, "--as", "coder", "--prove", "all=true")
    reached(governed, "evidence", "publish", NAME)
    reached(governed, "evidence", "replay", NAME, "--yes")
    reached(governed, "evidence", "replay", NAME, "--yes", "--record", "--as", "validator")
    attested(reached, governed)
    governed.stub(THIRD)
    reached(governed, "evidence", "demand", THIRD, "1", "--command", "pytest tests")
    reached(governed, "evidence", "demand", THIRD, "9", "--exempt", "x")
    governed.write("src/report.md", "Good.\n")
    governed.commit("a report")
    reached(governed, "verdict", NAME, "PASS", "--report", "src/report.md", "--as", "validator")
    reached(governed, "packet", "reopen", NAME, "--reason", "x")
    governed.commit("reopened")
    reached(governed, "done", NAME, "--as", "coder")
    reached(governed, "done", NAME, "--as", "coder", "--prove", "all=true")
    governed.done("verdict", NAME, "PASS", "--report", "src/report.md", "--as", "validator")
    governed.commit("judged")
    governed.git("switch", "--quiet", "main")
    governed.git("merge", "--quiet", "--no-ff", f"wp/{NAME}")
    reached(governed, "merged", NAME)
    reached(governed, "packet", "advance", NAME)
    for words in (
        ["board", "registry", "audit"],
        ["trace"],
        ["trace", "src/report.md:1"],
        ["trace", "trailers", NAME],
        ["trace", "impact", "src/report.md"],
        ["audit"],
        ["report", "requirements"],
        ["report", "waiting"],
    ):
        reached(governed, *words)
    governed.stub("WP-1-Greeting-v2")
    reached(governed, "packet", "supersede", OTHER, "--by", "WP-1-Greeting-v2", "--reason", "x")
    reached(governed, "packet", "rename", "WP-1-Greeting-v2", "WP-1-Fourth-v1")
    reached(governed, "packet", "abandon", "WP-1-Fourth-v1", "--reason", "x")


WORK_PACKAGE = """\
---
work_package_id: {0}
title: Read packets
lane: planned
dependencies: [{1}]
subtasks: []
history:
- {{timestamp: "2026-02-16T00:00:00Z", lane: planned, agent: system}}
---

# Read packets
"""


def missions(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Work packages of spec-kitty."""
    governed = govern(folder, patch, capsys)
    for name, other in (("WP01", ""), ("WP02", "WP01")):
        governed.write(f"kitty-specs/001-parser/tasks/{name}-read.md", WORK_PACKAGE.format(name, other))
    governed.commit("a mission")
    for words in (["show", "WP02"], ["why", "WP02"], ["packet", "implement", "WP02"],
                  ["packet", "implement", "WP09"], ["claim", "WP01"], ["packet", "implement", "WP01"]):  # fmt: skip
        reached(governed, *words)


def links(reached: Reached, governed: Governed) -> None:
    """A run of a packet whose store is lost."""
    reached(governed, "runtime", "run", "start", "nightly", "--packet", NAME)
    for words in (["why", NAME], ["show", NAME], ["status"], ["board", "show"], ["runtime", "runs", "settle"]):
        reached(governed, *words)
    shutil.rmtree(store_path(governed.root).parent)
    reached(governed, "runtime", "runs", "settle")
    reached(governed, "resume")
    reached(governed, "runtime", "runs", "unlink", f"{NAME}/nightly@00000001", "--reason", "x")


def machine_key() -> bytes:
    usual = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Ed25519PrivateKey.generate().private_bytes(*usual)


def hand_edits(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The board edited and moved, a packet forked by a merge, a command that was interrupted."""
    governed = govern(folder, patch, capsys)
    governed.begin(TOKENS_COUNT + GATE.replace("activation", "waiver"))
    governed.activate(NAME)
    for name in ("base", "ours", "theirs"):
        governed.write(name, governed.read(BOARD))
    reached(governed, "board", "merge-driver", "base", "ours", "theirs", BOARD)
    reached(governed, "board", "show")
    (folder.parent / "machine.pem").write_bytes(machine_key())
    reached(governed, "log", "export", "attestations", "--key", str(folder.parent / "machine.pem"))
    reached(governed, "board", "export")
    reached(governed, "board", "export", "--out", "board.html")
    (governed.root / "board.html").unlink()
    reached(governed, "board", "sync")
    reached(governed, "board", "move", NAME, "BLOCKED", "--reason", "no water")
    governed.replace(BOARD, "[BLOCKED]", "[VALIDATED]")
    reached(governed, "board", "sync", "--adopt")
    governed.done("board", "sync")
    governed.done("packet", "unblock", NAME)
    reached(governed, "note", NAME, "blocked by hand once")
    governed.commit("a packet")
    for branch in ("one", "two"):
        governed.git("switch", "--quiet", "--create", branch, "main")
        governed.done("claim", NAME, "--as", branch)
        governed.commit(branch)
    governed.git("merge", "--quiet", "--message", "merged", "one")
    reached(governed, "packet", "resolve", NAME, "--lane", "IN_PROGRESS", "--reason", "one began first")
    with patch.context() as dying:
        dying.setattr("workpacket.shell.transactions.journal.Journal.remove", interrupted)
        governed("block", NAME, "--reason", "x", "--until", "y")
    assert reached(governed, "log", "recover")["data"]["unfinished"]
    assert reached(governed, "log", "recover", "--forward")["data"]["recovered"]
    reached(governed, "policy", "trust", "--key", "nowhere")


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def replaced(reached: Reached, signed: Signed, envelope: str) -> None:
    signed.governed.commit("lifted")
    signed.revoke(envelope)
    signed.approve()
    reached(signed.governed, "packet", "reapprove", NAME)


def amended(reached: Reached, signed: Signed) -> None:
    governed = signed.governed
    reached(governed, "packet", "contract", NAME)
    for path in (STUB, PACKET):
        governed.replace(path, "The name is printed.", "The name is printed, in full.")
    signed.approve("amendment")
    reached(governed, "packet", "amend", NAME, "--reason", "it was cut short")


def approvals(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys, decisions signed elsewhere and taken back, conditions lifted."""
    (folder / "governed").mkdir()
    governed = govern(folder / "governed", patch, capsys)
    gates = {"activation": "approver", "waiver": "approver", "override": "approver", "policy": "operator"}
    signed = Signed(governed, folder / "people")
    signed.begin(gates=gates)
    governed.stub(NAME, depends=OTHER)
    governed.refine(NAME)
    governed.done("refine", NAME, "--present")
    envelope = signed.approve()
    governed.done("packet", "activate", NAME)
    amended(reached, signed)
    rule, lasting = "dependency_unknown_lane", ("--until", "2026-03-10", "--reason", "elsewhere")
    for gate, command in (("waiver", "waive"), ("override", "override")):
        signed.approve(gate, rule=rule, until="2026-03-10T23:59:59Z", reason="elsewhere")
        reached(governed, command, NAME, rule, *lasting)
    assert reached(governed, "trace", NAME)["data"]["packets"][0]["decisions"]
    replaced(reached, signed, envelope)
    governed.replace(".GOV/policy/policy.toml", "[approvals]", "# of other people\n[approvals]")
    assert reached(governed, "policy", "re-anchor", "--reason", "lost")["ok"]
    reached(governed, "policy", "trust", "--key", str(folder / "people" / VICTOR.partition("@")[0]))
    governed.commit("lifted")
    reached(governed, "log", "checkpoint", "--key", str(folder / "people" / "nobody"))
    reached(governed, "key", "init", str(folder / "people" / "event"), "--event")
    governed.write(f".GOV/checkpoints/{'0' * 64}.sshsig", "of nothing\n")
    reached(governed, "log", "checkpoint")
    patch.undo()
    patch.setenv("HOME", str(folder / "home"))
    patch.setenv("XDG_CONFIG_HOME", str(folder / "home" / "config"))
    patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    patch.delenv("SSH_AUTH_SOCK", raising=False)
    (folder / "story").mkdir()
    story: Story = begin(folder / "story", folder / "home")
    statement = folder / "statement"
    public = f"{story.keys[ALICE]}.pub"
    reached(story.run, "approve", WP, "--key", public, "--statement-out", str(statement))
    sign_elsewhere(story, statement)
    envelope = reached(story.run, "approve", "--attach", str(statement))["data"]["envelope"]
    word = envelope.rpartition("/")[2][:12]
    reached(story.run, "approvals", "revoke", word, "--key", public, "--statement-out", str(folder / "revocation"))
    revoked = typing(story, ("type: ", f"REVOKE REFINEMENT {WP}"))
    reached(revoked, "approvals", "revoke", word, "--key", str(story.keys[ALICE]))
    reached(story.run, "approvals", "list")
    reached(story.run, "approvals", "verify")
    phrase = ("correct horse battery staple",) * 2
    made = typing(story, *zip(("Enter passphrase", "same passphrase again"), phrase, strict=True))
    reached(made, "key", "init", "--principal", "dora@example.org")
    reached(story.run, "key", "init")
    reached(story.run, "key", "doctor")
    reached(story.run, "key", "list")


def typing(story: Story, *answers: tuple[str, str]) -> Callable[..., Result]:
    """At a terminal the questions stand on the screen too; the object is the last line."""

    def run(*words: str) -> Result:
        done = story.type(list(words), *answers)
        return Result(done.status, done.screen.strip().rpartition("\n")[2], "")

    return run


def sign_elsewhere(story: Story, statement: Path) -> None:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", str(story.keys[ALICE]), str(statement)]
    subprocess.run(command, check=True, capture_output=True)


def imports(reached: Reached, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Place(folder / "other place", capsys)
    other.root.mkdir()
    make_repository(other.root)
    reached(other, "runtime", "runs", "import", str(folder / "one"))
    saver = InMemorySaver()
    converse(saver, ["asked"])
    fill(folder / "checkpoints.sqlite", saver)
    for _ in range(2):  # the second time, the thread is here already
        reached(other, "runtime", "runs", "import", str(folder / "checkpoints.sqlite"))


def runs(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs from their start to their removal, and checkpoints of foreign forms."""
    make_repository(folder)
    for key, value in (("user.name", "ann"), ("user.email", "ann@example.org")):
        git(folder, "config", key, value)
    place = Place(folder, capsys)
    owner = ("--owner", str(os.getpid()))
    run = reached(place, "runtime", "run", "start", "nightly", *owner)["data"]["handle"]
    reached(place, "runtime", "run", "start", "nightly")
    reached(place, "runtime", "run", "step", run, "a", "--", "true")
    reached(place, "runtime", "run", "step", run, "b", "--", "false")
    reached(place, "runtime", "run", "step", run, "c", "--result", "[1]")
    reached(place, "runtime", "run", "checkpoint", run, "--cursor", '{"page": 7}', "--token")
    reached(place, "runtime", "run", "milestone", run)
    (folder / "work").touch()
    reached(place, "runtime", "run", "checkpoint", run, "--commit")
    reached(place, "runtime", "run", "stop", run, "--code", "stalled")
    for words in (["resume"], ["resume", "nightly"], ["runtime", "doctor"]):
        reached(place, *words)
    for words in (["list"], ["show", "nightly"], ["tail", "nightly"], ["diff", "nightly", "nightly"],
                  ["export", "nightly"], ["export", "nightly", "--output", "one"], ["export", "--raw"],
                  ["export", "nightly", "--format", "cloudevents"], ["export", "--raw", "--output", "all"],
                  ["verify"], ["back-up", "kept.db"], ["restore", "kept.db"]):  # fmt: skip
        reached(place, "runtime", "runs", *words)
    point = reached(place, "runtime", "runs", "show", "nightly", "--values")["data"]["events"]
    at = next(event["data"]["id"] for event in point if event["type"] == "checkpoint")
    reached(place, "runtime", "runs", "fork", "nightly", "--at", at, "--once", "other half")
    run = reached(place, "runtime", "run", "start", "nightly", *owner)["data"]["handle"]
    reached(place, "runtime", "run", "stop", run)
    reached(place, "runtime", "runs", "prune", "--older-than", "0")
    reached(place, "runtime", "runs", "prune", "--older-than", "0", "--yes")
    imports(reached, folder, capsys)
    reached(place, "runtime", "run", "start", "other", *owner)
    for line in (("signal", "other", "go", "--value", "7"), ("questions",), ("cancel", "other")):
        reached(place, "runtime", *line)
    for form, data in SAMPLES.items():
        (folder / form).write_bytes(data)
        reached(place, "log", "import", form, form)
        reached(place, "log", "export", form)
        reached(place, "log", "export", form, "--out", f"{form}.again")
    (folder / "other").write_bytes(lines(STEP_EVENT))
    reached(place, "log", "import", "step", "other")
    (folder / "login-summary.md").write_text("---\nfeature: login\nstatus: complete\n---\n")
    reached(place, "log", "import", "role", "role", "login-summary.md")
    (folder / "bad").write_bytes(b"[1]\n")
    reached(place, "log", "import", "step", "bad")
    (folder / "package.json").write_text('{"dependencies": {"wolf": "1"}}')
    reached(place, "audit", "deps")
    reached(place, "audit", "deps", "--since", "other")
    reached(place, "audit", "deps", "--base", "nowhere")
    with chdir(folder), Runtime.open() as runtime, open_session(runtime, "s", model="m") as session:
        session.add("user", "hello")
    reached(place, "runtime", "session", "list")
    reached(place, "runtime", "session", "show", "session@s")
    reached(place, "runtime", "session", "decide", "session@s", "retry")
    with Runtime.open(store_path(folder)) as runtime, runtime.run("of an older version"):
        pass
    reached(place, "audit", "deps", "--since", "of an older version")


def on_a_server(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables, a queue and a worker, on a server of PostgreSQL."""
    make_repository(folder)
    (folder / "jobs.py").write_text("TASKS = {'bad': lambda run: 1 // 0}\n", "utf-8")
    place = Place(folder, capsys)
    server = Server()
    patch.setattr(sys, "path", list(sys.path))
    patch.delitem(sys.modules, "jobs", raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        server.start()
        patch.setenv("WORKPACKET_STORE", server.url())
        reached(place, "runtime", "store", "upgrade")
        reached(place, "runtime", "queue", "offer", "bad", "--once", "a", "--tries", "1")
        reached(place, "runtime", "worker", "jobs:TASKS", "--until-empty")
        (job,) = reached(place, "runtime", "queue", "list")["data"]["jobs"]
        reached(place, "runtime", "queue", "revive", str(job["job"]))
    finally:
        server.remove()
        sys.modules.pop("jobs", None)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def batches(reached: Reached, folder: Path, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch through its phases, and a role beside it."""
    scoped(folder, capsys)
    place = Place(folder, capsys)
    for words in (["next"], ["begin"], ["status"], ["restore"], ["complete"]):
        reached(place, "runtime", "batch", words[0], "auth")
    reached(place, "runtime", "batch", "complete", "auth", "--phase", "testers", "--task", "T001")
    role = ("claimed", "auth", "backend-eng", "--team", "build", "--phase", "design", "--instance", "one")
    reached(place, "runtime", "progress", *role)
    reached(place, "runtime", "progress", "list")
    assert reached(place, "resume", "--yes", "--instance", "one")["data"]["resumed"]
    reached(place, "runtime", "progress", "close", "auth", "--instance", "one")


@pytest.mark.parametrize(
    "change",
    [{"handle": 1}, {"surplus": 1}, {"attempt": 0}, {"steps": [1]}, {"next": None}],
    ids=lambda change: next(iter(change)),
)
def test_a_schema_refuses_what_its_command_does_not_say(change: dict[str, Any]) -> None:
    data = {"handle": "a@1#1", "run": "a@1", "attempt": 1, "state": "running", "cursor": None, "steps": [], "next": ""}
    validator = forms_of("run")["start"]
    validator.validate(data)
    with pytest.raises(ValidationError):
        validator.validate(data | change)


def test_the_schema_of_an_answer_is_printed(place: Place) -> None:
    assert "commands/cancel" in place("help", "schema").stdout.split()
    assert json.loads(place("help", "schema", "commands/cancel").stdout) == load(path_of("cancel"))
    assert place("help", "schema", "commands/nothing").returncode == 2
    assert place("help", "schema", "commands/cancel", "--draft-07").returncode == 2
