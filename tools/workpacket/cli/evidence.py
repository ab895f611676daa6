"""`workpacket evidence`: the output of a packet's proofs, for reviewers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

from workpacket.audit.tracing import Evidence, evidence_of, latest_evidence
from workpacket.cli.options import Arguments, Command, Option, subcommand
from workpacket.cli.packet_command import words_of
from workpacket.cli.read_only import show_json
from workpacket.cli.workspace import write_new
from workpacket.errors import WorkpacketError
from workpacket.model import exits
from workpacket.model.canonical import Json
from workpacket.model.wording import counted
from workpacket.report.escape import escape, escape_lines
from workpacket.runtime.records.redaction import Redactor
from workpacket.shell.governed_files import find_governed, packet_called
from workpacket.shell.governing.execution import here
from workpacket.shell.governing.proof_process import kept_output

_FENCE = re.compile(r"`{3,}")
_CODE = re.compile(r"`+")


def publish(arguments: Arguments) -> int:
    repository = here()
    name = packet_called(str(repository.root), words_of(arguments, 1, "publish WP_ID")[0])
    rows = [evidence_of(*each) for each in latest_evidence(find_governed(str(repository.root)).packet(name))]
    found = {one.log_sha256: kept_output(repository, one.log_sha256, one.log_tail) for one in rows if one.log_sha256}
    ends = {digest: end for digest, end in found.items() if end is not None}
    if not ends:
        message = f"no output of the proofs of {name} is in this clone"
        hint = (
            f"publish it in the clone where they were run, or run them again: workpacket submit {name} --prove "
            "N=COMMAND"
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
        yield f"- {_code(one.criterion)}"
        ended = "was stopped at its time limit" if one.limit == "time" else f"ended with {one.exit_code}"
        yield f"  {_code(one.what)} {ended} at {one.commit[:12] or 'a commit that is not recorded'}; `{one.log_sha256}`"
        if one.log_sha256 not in ends:
            yield "  Its output is not in this clone."
        elif one.log_sha256 not in shown:
            shown.add(one.log_sha256)
            yield from _block(ends[one.log_sha256])


def _code(text: str) -> str:
    """Return text in a fence that Markdown does not interpret, whatever it contains."""
    line = escape(text)
    fence = "`" * (max((len(run) for run in _CODE.findall(line)), default=0) + 1)
    return f"{fence} {line} {fence}" if len(fence) > 1 else f"`{line}`"


def _block(text: str) -> Iterator[str]:
    if not text.strip():
        yield "  It printed nothing."
        return
    lines = escape_lines(text.rstrip("\n")).split("\n")
    fence = "`" * (max((len(run) for line in lines for run in _FENCE.findall(line)), default=2) + 1)
    yield ""
    yield f"  {fence}text"
    yield from (f"  {line}" for line in lines)
    yield f"  {fence}"


def run(arguments: Arguments) -> int:
    subcommand(arguments, ("publish",))

    return publish(arguments)


COMMAND = Command(
    "evidence",
    run,
    arguments="publish WP_ID",
    description="""
For each proof, the log contains the command, the exit code, and the length and digest of the output; the end of the
output stays in the clone where the proof was run. `publish` writes it as Markdown, for the text of a pull request.
Secrets recognized by their form, or as values of your environment, were removed, and are searched for again. Read the
text before you paste it: what is published cannot be taken back.""",
    options=(Option("out", "write to this new file instead of printing", value="FILE"),),
    examples=(
        "workpacket evidence publish WP-1-Parser-v1",
        "workpacket evidence publish WP-1-Parser-v1 --out ../evidence.md",
    ),
)
