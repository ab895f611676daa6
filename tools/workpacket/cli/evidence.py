"""`workpacket evidence`: write required proofs into a contract, rerun proofs here or in CI, and publish their output
for reviewers.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from workpacket.approvals.fields import write_instant
from workpacket.cli.open_store import answer
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.packet_command import ACTING, Decide, actor_of, conclude, packet_of, words_of
from workpacket.cli.read_only import reader_identity, show_json
from workpacket.cli.workspace import write_new
from workpacket.lifecycle.facts import PacketFacts
from workpacket.lifecycle.proofs import Evidence, evidence_of, latest_evidence
from workpacket.model import exits
from workpacket.model.canonical import Json, canonical_bytes
from workpacket.model.event_types import MOST_EVIDENCE
from workpacket.model.events import Actor
from workpacket.model.layout import LARGEST_EVENT
from workpacket.model.wording import counted
from workpacket.problem import WorkpacketError
from workpacket.report.pull_request import block, code
from workpacket.report.terminal import escape
from workpacket.runtime.records.redaction import Redactor
from workpacket.shell.governed_files import find_governed, packet_called
from workpacket.shell.governing.execution import carry_out, facts_before, here
from workpacket.shell.governing.proof_process import Account, account_of, kept_output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.approvals.sigstore import Attested


def publish(arguments: Arguments) -> int:
    repository = here()
    name = packet_called(str(repository.root), words_of(arguments, 1, "publish WP_ID")[0])
    rows = [evidence_of(*each) for each in latest_evidence(find_governed(str(repository.root)).packet(name))]
    found = {one.log_sha256: kept_output(repository, one.log_sha256, one.log_tail) for one in rows if one.log_sha256}
    ends = {digest: end for digest, end in found.items() if end is not None}
    if not ends:
        message = f"this clone has no proof output for {name}"
        hint = (
            "publish the output from the clone where the proofs were run, or run them again: workpacket submit "
            f"{name} --prove N=COMMAND"
        )
        raise WorkpacketError("evidence_not_kept", message, hint=hint)
    redactor = Redactor.from_environment(os.environ)
    text = redactor.clean_text("\n".join(_markdown(name.text, rows, ends)) + "\n")
    return _answer(arguments, name.text, text, len(ends))


def _answer(arguments: Arguments, name: str, text: str, count: int) -> int:
    target = arguments.value("out")
    if target:
        write_new(target, text.encode())
    if arguments.flag("json"):
        data: dict[str, Json] = {"id": name, "outputs": count, "out": target, "text": "" if target else text}
        return show_json(arguments, data)
    if target:
        print(f"{counted(count, 'output')} written to {escape(target)}")
        print(f"next: read {escape(target)}, then add it to the pull request")
    else:
        sys.stdout.write(text)
    return exits.OK


def _markdown(name: str, rows: Sequence[Evidence], ends: dict[str, str]) -> Iterator[str]:
    yield f"## Evidence for {name}"
    shown: set[str] = set()
    for one in rows:
        if not one.log_sha256:
            continue
        yield ""
        yield f"- {code(one.criterion)}"
        ended = "was stopped at its time limit" if one.limit == "time" else f"ended with {one.exit_code}"
        yield f"  {code(one.what)} {ended} at {one.commit[:12] or 'an unrecorded commit'}; `{one.log_sha256}`"
        if one.log_sha256 not in ends:
            yield "  Its output is not in this clone."
        elif one.log_sha256 not in shown:
            shown.add(one.log_sha256)
            text = ends[one.log_sha256]
            yield from block(text, "  ") if text.strip() else ("  It printed nothing.",)


def demand(arguments: Arguments) -> int:
    """Write the required proof of a criterion into the stub and into the packet."""
    from workpacket.lifecycle.proofs import NewDemand, write_demand

    name, number = words_of(arguments, 2, "WP_ID and the number of a criterion")
    given = {key: " ".join(arguments.value(key).split()) for key in ("command", "tests", "paths", "exempt")}
    if not number.isdecimal() or not (given["command"] or given["exempt"]):
        raise usage(
            arguments.command,
            "missing_argument",
            "it requires the number of a criterion and either --command or --exempt",
        )
    new = NewDemand(int(number), **given)
    return _write(arguments, name, lambda facts, packet: write_demand(facts, packet, new))


def _write(arguments: Arguments, word: str, decide: Decide) -> int:
    repository = here()
    name = packet_called(str(repository.root), word).text
    actor = actor_of(arguments, repository)
    carried = carry_out(repository, "evidence", [name], actor, lambda facts: decide(facts, packet_of(facts, name)))
    return conclude(arguments, carried, name)


def replay(arguments: Arguments) -> int:
    """Rerun the proofs of one packet's latest submission, or of all submissions in a change, and compare the
    results."""
    account = _account(arguments)
    base = arguments.value("base")
    if not base:
        word = words_of(arguments, 1, "WP_ID")[0]
        return _replay(arguments, packet_called(str(here().root), word).text, account)
    if arguments.words or arguments.flag("json") or arguments.flag("record"):
        raise usage(
            arguments.command, "conflicting_options", "--base cannot be combined with a packet, --json or --record"
        )
    from workpacket.shell.governing.replay import submitted_since

    statuses = [_replay(arguments, name, account) for name in submitted_since(here(), base)]
    print(f"{counted(len(statuses), 'submission')} replayed")
    return max(statuses, default=exits.OK)


def _replay(arguments: Arguments, name: str, account: Account | None) -> int:
    from workpacket.lifecycle.proofs import record_replay
    from workpacket.shell.governing.replay import recorded_proofs
    from workpacket.shell.governing.replay import replay as run_again

    repository = here()
    # A reader need not be named; an actor who records must be.
    actor = actor_of(arguments, repository) if arguments.flag("record") else reader_identity(arguments, repository)
    facts = facts_before(repository, [name], actor)
    packet = facts.packets[name]
    found = recorded_proofs(repository, packet)
    if not arguments.flag("yes") and not _agreed(arguments, found.commands):
        print("nothing was run")
        return exits.REFUSED
    redactor = Redactor.from_environment(os.environ)
    differences = run_again(repository, packet, found, facts.policy.evidence, redactor, os.environ, account)
    if arguments.value("statements"):
        _state(arguments.value("statements"), packet, differences)
    if arguments.flag("record"):
        return _write(arguments, name, lambda facts, packet: record_replay(facts, packet, found.commit, differences))
    if arguments.flag("json"):
        data: dict[str, Json] = {"id": name, "commit": found.commit, "differences": [*differences]}
        return show_json(arguments, data)
    print(f"{name} at {found.commit[:12]}: {'different results' if differences else 'the same results'}")
    for line in differences:
        print(f"  - {escape(line)}")
    if not arguments.flag("base"):
        print(f"next: workpacket evidence replay {name} --record")
    return exits.FINDINGS if differences else exits.OK


def _state(folder: str, packet: PacketFacts, differences: Sequence[str]) -> None:
    """Write the result of the replay as a statement for CI to sign."""
    from workpacket.lifecycle.attestations import AttestedPacket, replay_of

    statement = replay_of(AttestedPacket(packet.state), packet.id.text, differences)
    write_new(os.path.join(folder, f"{packet.id.text}.json"), canonical_bytes(statement) + b"\n")


def attest(arguments: Arguments) -> int:
    """Write the attestation file for a bundle. This requires neither a repository nor any part of the change."""
    from workpacket.approvals.sigstore import attestation_file

    target = arguments.value("out")
    if not target:
        raise usage(arguments.command, "missing_argument", "attest requires --out FILE")
    data = attestation_file(_read(words_of(arguments, 1, "attest BUNDLE")[0]))
    write_new(target, data)
    said: dict[str, Json] = {key: text for key, text in json.loads(data).items() if key != "bundle"}
    text = f"{escape(target)} attests {said['commit']}, signed by {escape(str(said['identity']))}\n"
    return answer(arguments, text, {**said, "out": target})


def verify(arguments: Arguments) -> int:
    """Verify a CI attestation offline, against the authority that the base's policy pins."""
    name, path, found, _ = _attested(arguments, reader_identity(arguments, here()))
    differences = _differences(found)
    result, at = "different" if differences else "same", write_instant(found.signed_at)
    data: dict[str, Json] = {
        "id": name,
        "commit": found.commit,
        "differences": differences,
        "issuer": found.issuer,
        "identity": found.identity,
        "digest": found.digest,
        "signed_at": at,
    }
    what = f"{name} at {found.commit[:12]}: {result} results, attested by {escape(found.identity)} at {at}\n"
    status = exits.FINDINGS if differences else exits.OK
    return answer(arguments, what, data, status=status, then=f"workpacket evidence record {name} {escape(path)}")


def record(arguments: Arguments) -> int:
    """Verify a CI attestation, and record it with its result."""
    from workpacket.lifecycle.proofs import record_replay

    name, _, found, text = _attested(arguments, actor_of(arguments, here()))
    differences = [str(each) for each in _differences(found)]
    return _write(arguments, name, lambda facts, packet: record_replay(facts, packet, found.commit, differences, text))


def _attested(arguments: Arguments, actor: Actor) -> tuple[str, str, Attested, str]:
    """Return the packet, the path of the file, what it proves about the last submission, and its text."""
    from workpacket.lifecycle.proofs import attested_replay

    word, path = words_of(arguments, 2, "WP_ID and FILE")
    repository = here()
    name = packet_called(str(repository.root), word).text
    text = _read(path).decode("utf-8", "replace").rstrip("\n")
    facts = facts_before(repository, [name], actor)
    submitted = [event for event in facts.packets[name].log.events if event.type == "submitted"]
    return name, path, attested_replay(text, submitted[-1] if submitted else None, facts.policy.evidence), text


def _differences(found: Attested) -> list[Json]:
    listed: list[Json] = [line[:500] for line in found.failed[:MOST_EVIDENCE]] or ["CI does not say which ones"]
    return listed if found.result == "FAILED" else []


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(LARGEST_EVENT)
    except OSError as error:
        raise WorkpacketError("file_unreadable", error.strerror or "it cannot be read", path=path) from error


def _account(arguments: Arguments) -> Account | None:
    name = arguments.value("commands-as")
    if not name:
        return None
    try:
        return account_of(name)
    except ValueError as error:
        raise usage(arguments.command, "invalid_value", f"--commands-as: {error}") from error


def _agreed(arguments: Arguments, commands: Sequence[str]) -> bool:
    """Ask before running commands that come from the log: they run with all the rights of this account."""
    if not sys.stdin.isatty():
        raise usage(arguments.command, "missing_argument", "without a terminal, it requires --yes")
    print("\n".join(["the following commands will be run:", *(f"  {escape(command)}" for command in commands)]))
    return input("run them? [y/N] ").strip().lower() in {"y", "yes"}


def run(arguments: Arguments) -> int:
    return _ACTIONS[subcommand(arguments, tuple(_ACTIONS))](arguments)


_ACTIONS: Final[Mapping[str, Callable[[Arguments], int]]] = {
    "publish": publish,
    "demand": demand,
    "replay": replay,
    "attest": attest,
    "verify": verify,
    "record": record,
}


COMMAND = Command(
    "evidence",
    run,
    arguments="publish|demand|replay|attest|verify|record [WP_ID] [N|FILE]",
    description="""
`demand` writes below criterion N of the stub, and of the packet, what is to prove it: a command, and which of its
tests; or why no test has to fail without the work. `replay` runs the proofs of the latest submission again in fresh
trees and says what came to something else; with --record the log says so, too. With --commands-as, another account runs
the commands: it can read neither the environment nor the files of the one that judges.

CI attests what it replayed: `replay --statements` writes a statement for each submission, and a job that never checks
out the change signs it with Sigstore. `attest` makes one file of the bundle and what it says. `verify` compares the
file with the submission and with `[evidence.ci]` of the base's policy, without a network; `record` also puts it into
the log.

For each proof, the log contains the command, the exit code, and the length and digest of the output; the end of the
output stays in the clone where the proof was run. `publish` writes it as Markdown, for the text of a pull request.
Secrets recognized by their form, or as values of your environment, were removed; `publish` searches for them again.
Read the text before you paste it: published text cannot be taken back.""",
    options=(
        Option("out", "publish, attest: write to this new file", value="FILE"),
        Option("command", "demand: the command to run", value="COMMAND"),
        Option("tests", "demand: the ids of tests that must run and pass", value="A,B"),
        Option("paths", "demand: the files or folders with these tests", value="A,B"),
        Option("exempt", "demand: the reason why no test needs to fail without the work", value="REASON"),
        Option("yes", "replay: run the commands without asking"),
        Option("record", "replay: record the result"),
        Option("base", "replay: every submission made since this commit", value="REV"),
        Option("commands-as", "replay: the account that runs the commands; only for root", value="USER"),
        Option("statements", "replay: write the results to this existing folder, for CI to sign", value="FOLDER"),
        *ACTING,
    ),
    examples=(
        "workpacket evidence demand WP-1-Parser-v1 1 --command 'python -m pytest tests/parser'",
        "workpacket evidence demand WP-1-Parser-v1 2 --exempt 'documentation is read, not run'",
        "workpacket evidence replay WP-1-Parser-v1 --yes --record --as validator-1",
        "workpacket evidence replay --base origin/main --yes --commands-as proofs",
        "workpacket evidence attest WP-1-Parser-v1.sigstore.json --out WP-1-Parser-v1.attestation.json",
        "workpacket evidence record WP-1-Parser-v1 WP-1-Parser-v1.attestation.json",
        "workpacket evidence publish WP-1-Parser-v1",
        "workpacket evidence publish WP-1-Parser-v1 --out ../evidence.md",
    ),
)
