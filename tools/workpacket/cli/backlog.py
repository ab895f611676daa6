"""Commands that start work: `new` writes a stub, `refine` writes its technical refinement, and `adopt` writes the logs
of old packets.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

from workpacket.cli.options import Arguments, Command, Option, usage
from workpacket.cli.packet_command import ACTING, COMMIT, actor_of, conclude, packet_command, scope_of
from workpacket.documents.packet import LightText, Packet, criterion_lines
from workpacket.documents.stub import Stub
from workpacket.git.objects import object_names
from workpacket.git.repository import Repository, record_main_branch, reference_tips
from workpacket.lifecycle.backlog import RECURRING, NewStub, Preference, adopt, new, present, refine, standing_stub
from workpacket.lifecycle.contract import stated
from workpacket.lifecycle.facts import Facts, PacketFacts
from workpacket.lifecycle.forms import NewPacket, id_for, new_light, refine_light
from workpacket.lifecycle.moves import Answer
from workpacket.lifecycle.policy import PacketsPolicy
from workpacket.model.ids import InvalidId, WorkPacketId, next_revision
from workpacket.model.layout import LOG_FOLDER
from workpacket.problem import WorkpacketError
from workpacket.shell.actor import moment
from workpacket.shell.base import read_base_policy
from workpacket.shell.governed_files import (
    GovernedFiles,
    find_governed,
    packet_named,
    packets_elsewhere,
    require_no_log_elsewhere,
)
from workpacket.shell.governing.execution import carry_out, here
from workpacket.shell.held import look
from workpacket.shell.tree import read_bytes
from workpacket.text.source import MARKDOWN, PATH_LENGTH
from workpacket.value import replace


def _run_new(arguments: Arguments) -> int:
    repository = here()
    governed = find_governed(str(repository.root))
    if arguments.value("from") and not arguments.words and not arguments.value("next"):
        from workpacket.cli.issues import make_packets

        look(repository, head=False).require_visible()
        packets = read_base_policy(repository).lifecycle.packets
        form = arguments.value("form") or packets.form
        made: set[str] = set()

        def id_of(title: str) -> WorkPacketId:
            wp_id = _id_of(title, repository, governed.known | made, packets.phase)
            made.add(wp_id.text)
            return wp_id

        return make_packets(arguments, repository, governed, form, id_of)
    titled = bool(arguments.words) and not arguments.words[0].casefold().startswith("wp-")
    if titled and (len(arguments.words) > 1 or not arguments.words[0].strip()):
        raise usage(arguments.command, "missing_argument", "give one title, in quotes")
    packets = PacketsPolicy()
    if titled:
        look(repository, head=False).require_visible()
        packets = read_base_policy(repository).lifecycle.packets
    form = arguments.value("form") or (packets.form if titled else "full")
    given = [name for name in _LIGHT_ONLY if arguments.flag(name)]
    if form == "light":
        return _run_new_light(arguments, repository, governed, packets.phase)
    if given:
        raise usage(arguments.command, "conflicting_options", f"--{given[0]} requires a packet in the light form")
    title = " ".join(arguments.words[0].split()) if titled else ""
    if titled:
        arguments.words[0] = _id_of(" ".join(arguments.words), repository, governed.known, packets.phase).text
    wp_id = _wanted_id(arguments, governed)
    intent = _intent(arguments, governed, wp_id)
    # The new packet is included, because git may already have a packet with that name that is missing here.
    known = [name for name in governed.known if WorkPacketId.parse(name).base == wp_id.base]
    revisions = [*known, *({wp_id.text} - {*known})]
    # Each with its demand below it, as an item of the stub.
    criteria = ["\n".join(criterion_lines(*one)).removeprefix("- ") for one in _criteria(arguments)]
    intent = replace(
        intent,
        what=intent.what or title,
        roadmap_pointer=arguments.value("roadmap") or intent.roadmap_pointer,
        risk_tier=arguments.value("risk") or intent.risk_tier,
        acceptance=criteria or intent.acceptance,
        in_scope=scope_of(arguments) or intent.in_scope,
        dependencies=_dependencies(arguments, repository, governed) or intent.dependencies,
    )
    actor = actor_of(arguments, repository)
    carried = carry_out(repository, "new", revisions, actor, lambda facts: new(facts, intent))
    return conclude(arguments, carried, wp_id.text)


# Only the light form contains these when it is created: a full packet has a refinement for them.
_LIGHT_ONLY: Final = ("refinement", "anchor", "requirement")


def _run_new_light(arguments: Arguments, repository: Repository, governed: GovernedFiles, phase: str) -> int:
    for other in ("next", "from", "roadmap"):
        if arguments.flag(other):
            what = f"--{other} applies only to the full form: add --form full"
            raise usage(arguments.command, "conflicting_options", what)
    named = arguments.words[0].casefold().startswith("wp-")
    wp_id = _wanted_id(arguments, governed) if named else _id_of(arguments.words[0], repository, governed.known, phase)
    recurring = _intent(arguments, governed, wp_id) if arguments.value("standing") or arguments.value("until") else None
    title = arguments.value("what") if named else arguments.words[0]
    if arguments.value("what") and not named:
        raise usage(
            arguments.command, "conflicting_options", "the title already says what to do, so --what requires a WP_ID"
        )
    title = title.strip() or (recurring.what if recurring is not None else "")
    if not title:
        raise usage(arguments.command, "missing_argument", f"{wp_id} needs a title: --what TEXT")
    why, scope = arguments.value("why"), scope_of(arguments)
    criteria = _criteria(arguments)
    if recurring is not None:
        why, criteria = recurring.why, criteria or [(one, "", "") for one in recurring.acceptance]
        scope += recurring.in_scope
    text = LightText(
        title=" ".join(title.split()),
        why=" ".join(why.split()),
        criteria=criteria,
        scope=scope,
        risk=arguments.value("risk"),
        dependencies=_dependencies(arguments, repository, governed),
        refinement=_text_of(arguments.value("refinement")),
    )
    wanted = NewPacket(wp_id, text, arguments.value("anchor"), _text_of(arguments.value("requirement")))
    known = [name for name in governed.known if WorkPacketId.parse(name).base == wp_id.base]
    revisions = [*known, *({wp_id.text} - {*known})]
    actor = actor_of(arguments, repository)
    carried = carry_out(repository, "new", revisions, actor, lambda facts: new_light(facts, wanted))
    return conclude(arguments, carried, wp_id.text)


def _id_of(title: str, repository: Repository, known: frozenset[str], phase: str) -> WorkPacketId:
    """Return an id for the title that no packet has yet, either here or on any branch that this clone knows."""
    first = id_for(title, phase, known)
    stems = [first.base, *(f"{first.base}-{number}" for number in range(2, _MOST_ALIKE))]
    tips = sorted(set(reference_tips(repository).values()))
    places = {f"{tip}:{LOG_FOLDER}/{stem}-v1": f"{stem}-v1" for tip in tips for stem in stems}
    elsewhere = {places[place] for place in object_names(repository, places)} if tips else set()
    return id_for(title, phase, known | elsewhere)


# The number of packets with one title on branches that are not merged.
_MOST_ALIKE: Final = 5


def _criteria(arguments: Arguments) -> list[tuple[str, str, str]]:
    """Return each criterion with the command that proves it; one command may prove all of them."""
    said, proofs = arguments.all_of("criterion"), arguments.all_of("prove")
    if proofs and len(proofs) not in {1, len(said)}:
        what = f"give one --prove for all criteria, or one for each: got {len(proofs)} for {len(said)} criteria"
        raise usage(arguments.command, "invalid_value", what)
    proofs = proofs * len(said) if len(proofs) == 1 else proofs or [""] * len(said)
    return [(" ".join(one.split()), proof, "") for one, proof in zip(said, proofs, strict=True)]


def _dependencies(arguments: Arguments, repository: Repository, governed: GovernedFiles) -> list[str]:
    """Return the ids given with --depends; a packet may still be on another branch."""
    named = arguments.values("depends")
    if all(name in governed.known for name in named):
        return list(named)
    elsewhere = packets_elsewhere(repository)
    return [name if name in elsewhere else packet_named(governed, name).text for name in named]


def _text_of(given: str) -> str:
    """Return the text of an option that accepts text, a file name, or `-` for standard input."""
    if given == "-":
        return sys.stdin.read(MARKDOWN.size).strip()
    if given and "\n" not in given and len(given) <= PATH_LENGTH and os.path.isfile(given):
        return read_bytes(os.getcwd(), given, MARKDOWN.size).decode("utf-8", "replace").strip()
    return given.strip()


def _wanted_id(arguments: Arguments, governed: GovernedFiles) -> WorkPacketId:
    base = arguments.value("next")
    if base and arguments.words:
        raise usage(arguments.command, "conflicting_options", "give either an id or --next")
    try:
        if base:
            known = [WorkPacketId.parse(name) for name in governed.known]
            return next_revision(WorkPacketId.parse(base).base, known)
        if len(arguments.words) != 1:
            raise usage(arguments.command, "missing_argument", "give a quoted title, a WP_ID, or --next BASE")
        wp_id = WorkPacketId.parse(arguments.words[0])
    except InvalidId as error:
        raise usage(arguments.command, "invalid_value", f"{base or arguments.words[0]!r} {error}") from error
    if wp_id.kind != "packet":
        raise usage(arguments.command, "invalid_value", f"{wp_id} is the id of a work package in a mission")
    return wp_id


def _intent(arguments: Arguments, governed: GovernedFiles, wp_id: WorkPacketId) -> NewStub:
    origin, kind = arguments.value("from"), arguments.value("standing")
    what, why = arguments.value("what"), arguments.value("why")
    if kind:
        given = [f"--{name}" for name in ("from", "what", "why") if arguments.value(name)]
        if given:
            raise usage(arguments.command, "conflicting_options", f"--standing and {given[0]} cannot be used together")
        return standing_stub(wp_id, kind, _last_day(arguments))
    if arguments.value("until"):
        raise usage(
            arguments.command,
            "missing_argument",
            "--until requires --standing: it sets the last day of a standing packet",
        )
    if not origin:
        return NewStub(wp_id, what, why, arguments.value("roadmap"))
    if origin in governed.packets and origin not in governed.stubs:
        source = governed.read(governed.packets[origin])
        assert source is not None
        return _from_packet(wp_id, origin, Packet(source), what, why)
    if origin in governed.stubs:
        source = governed.read(governed.stubs[origin])
        assert source is not None
        return _from_stub(wp_id, origin, Stub(source), what, why)
    text = read_bytes(os.getcwd(), origin, MARKDOWN.size).decode("utf-8", "replace")
    return _from_issue(wp_id, os.path.basename(origin), text, what, why)


def _last_day(arguments: Arguments) -> str:
    """Return the given day, which may be at most a year away; the default is 90 days from now."""
    today = date.fromisoformat(moment().now[:10])
    said = arguments.value("until")
    if not said:
        return str(today + timedelta(days=90))
    try:
        day = date.fromisoformat(said)
    except ValueError as error:
        raise usage(arguments.command, "invalid_value", f"invalid day {said!r}: expected YYYY-MM-DD") from error
    if not today <= day <= today + timedelta(days=366):
        raise usage(
            arguments.command,
            "invalid_value",
            f"invalid date {said}: it must be between today and a year from now",
        )
    return str(day)


def _from_stub(wp_id: WorkPacketId, name: str, stub: Stub, what: str, why: str) -> NewStub:
    said_why = stub.text_at("intent", "why")
    return NewStub(
        wp_id,
        what or (stub.what.value if stub.what is not None else ""),
        why or (said_why.value if said_why is not None else ""),
        stub.roadmap_pointer.value if stub.roadmap_pointer is not None else "",
        [text.value for text in stub.acceptance_criteria],
        [text.value for text in stub.in_scope],
        [text.value for text in stub.out_of_scope],
        [text.value for text in stub.dependencies],
        [text.value for text in stub.risks],
        [text.value for text in stub.spec_anchor_candidates],
        ("stub", name),
        risk.value if (risk := stub.text_at("metadata", "risk_tier")) is not None else "",
    )


def _from_packet(wp_id: WorkPacketId, name: str, packet: Packet, what: str, why: str) -> NewStub:
    """Return a stub with the content of a packet that has none, to convert a light packet to the full form."""
    contract = stated(packet, None)
    if isinstance(contract, str):
        raise WorkpacketError("contract_unreadable", contract, path=packet.path)
    demands = {demand.criterion: demand for demand in contract.evidence}
    criteria = [
        "\n".join(criterion_lines(one, demand.command, demand.exempt or "")).removeprefix("- ")
        if (demand := demands.get(one)) is not None
        else one
        for one in contract.criteria
    ]
    return NewStub(
        wp_id,
        what or contract.what,
        why or contract.why,
        "",
        criteria,
        [f"`{entry}`" if " " not in entry else entry for entry in contract.scope],
        contract.out_of_scope,
        contract.dependencies,
        (),
        (packet.anchor.heading,) if packet.anchor is not None else (),
        ("packet", name),
        contract.risk,
    )


def _from_issue(wp_id: WorkPacketId, name: str, text: str, what: str, why: str) -> NewStub:
    """Parse an issue: its first line says what to do, its items are the criteria, and its first paragraph says why."""
    lines = [line.strip() for line in text.splitlines()]
    title = next((line.lstrip("# ") for line in lines if line), "")
    items = [line[2:].removeprefix("[ ] ").strip() for line in lines if line.startswith(("- ", "* "))]
    prose = [line for line in lines if line and not line.startswith(("#", "- ", "* ", ">"))]
    body = [line for line in prose if line != title]
    return NewStub(wp_id, what or title, why or " ".join(body[:3]), "", items, source=("issue", name))


_NEW = Command(
    "new",
    _run_new,
    arguments="[TITLE] | [WP_ID]",
    description="""
For a title, in the form that the policy names: light, one document that `start` turns into work, or full. For an id, a
stub of the full form with its board entry, its registry row and the first event of its log.

`--from` without a title or an id makes a packet of each open issue, and none twice: `gh:NUMBER` and `glab:NUMBER` ask
these programs, a `.json` file has what they printed, `.jsonl` is that of beads, a folder is that of Backlog.md or of a
spec-kitty mission, any other file is a Markdown list of tasks, or the text of one issue.""",
    options=(
        Option("criterion", "a criterion: what must be true when the work is done", value="TEXT", many=True),
        Option("prove", "the command whose tests prove the criterion (or every criterion)", value="COMMAND", many=True),
        Option("scope", "a path that the work may change", value="PATH", many=True),
        Option("refinement", "light form: the refinement, as text, a file or -", value="TEXT|FILE|-"),
        Option("anchor", "light form: the section of the specification that requires the work", value="HEADING"),
        Option("requirement", "light form: a requirement to add to the specification", value="TEXT|FILE|-"),
        Option("depends", "a packet that must be done first", value="WP_ID", many=True),
        Option(
            "form", "the form of the packet (default with a title: the one in the policy)", choices=("light", "full")
        ),
        Option("next", "create the next revision of this base", value="BASE_WP_ID"),
        Option(
            "from",
            "create the packet from this stub or issue; without an id, create packets from all open issues",
            value="WP_ID|FILE",
        ),
        Option("what", "what to do, on one line", value="TEXT"),
        Option("why", "why, on one line", value="TEXT"),
        Option("standing", "create a standing packet, for small recurring changes", choices=tuple(RECURRING)),
        Option("until", "the last day of a standing packet (default: 90 days from today)", value="YYYY-MM-DD"),
        Option("roadmap", "where the roadmap mentions the packet", value="TEXT"),
        Option("risk", "the risk tier, such as LOW; part of the approved contract", value="TIER"),
        COMMIT,
        *ACTING,
    ),
    examples=(
        'workpacket new "Greet the user" --criterion "It greets by name." --prove "pytest tests" --scope src/',
        'workpacket new WP-1-Parser-v1 --what "Read packets without loss" --why "Hand edits must survive"',
        "workpacket new --next WP-1-Parser --from WP-1-Parser-v1",
        "workpacket new --from gh:17 --scope src/",
        "workpacket new WP-1-Dependencies-v1 --standing deps --until 2026-12-31",
    ),
)


def _refining(arguments: Arguments) -> Callable[[Facts, PacketFacts], Answer]:
    text, anchor = _text_of(arguments.value("refinement")), arguments.value("anchor")
    requirement = _text_of(arguments.value("requirement"))
    if anchor and requirement:
        raise usage(
            arguments.command, "conflicting_options", "--requirement adds a section; --anchor names an existing one"
        )

    def decide(facts: Facts, packet: PacketFacts) -> Answer:
        if packet.light:
            return refine_light(facts, packet, text=text, anchor=anchor, requirement=requirement)
        given = [f"--{name}" for name in ("refinement", "requirement") if arguments.flag(name)]
        if given:
            raise usage(arguments.command, "conflicting_options", f"{given[0]} requires a packet in the light form")
        return present(facts, packet) if arguments.flag("present") else refine(facts, packet, anchor)

    return decide


_REFINE = Command(
    "refine",
    lambda arguments: packet_command(arguments, _refining(arguments)),
    arguments="WP_ID",
    description="""
Writes a scaffold that pins the specification in force by its digest. Run again, it pins the current version. With
--anchor, it fills in the first anchor that is still open: lines, token and excerpt. With --present, it prints the block
to show to the user, and records that it was shown.""",
    options=(
        Option("present", "print the block to show to the user, and record its digest"),
        Option("refinement", "light form: the refinement, as text, a file or -", value="TEXT|FILE|-"),
        Option("anchor", "the section of the specification that requires the work", value="HEADING"),
        Option("requirement", "light form: a requirement to add to the specification", value="TEXT|FILE|-"),
        COMMIT,
        *ACTING,
    ),
    examples=(
        "workpacket refine WP-1-Parser-v1 --anchor 'The parser'",
        "workpacket refine WP-1-Parser-v1 --present",
    ),
)


def _run_adopt(arguments: Arguments) -> int:
    repository = here()
    governed = find_governed(str(repository.root))
    only = [packet_named(governed, word).text for word in arguments.words]
    said = arguments.value("prefer")
    prefer: Preference = "board" if said == "board" else "packet" if said == "packet" else ""
    actor = actor_of(arguments, repository)

    def decide(facts: Facts) -> Answer:
        without = [name for name, packet in sorted(facts.packets.items()) if not packet.log.by_id]
        require_no_log_elsewhere(repository, [name for name in without if not only or name in only])
        return adopt(facts, prefer, only)

    carried = carry_out(repository, "adopt", None, actor, decide)
    return conclude(arguments, carried, afterwards=lambda: record_main_branch(repository))


_ADOPT = Command(
    "adopt",
    _run_adopt,
    arguments="[WP_ID...]",
    description="""
No document is rewritten. Packets whose board entry contradicts their file are listed and skipped until --prefer says
which one is right. Like `init`, it records a main branch with an unusual name.""",
    options=(
        Option("prefer", "which to trust if the board and a file contradict each other", choices=("board", "packet")),
        *ACTING,
    ),
    examples=("workpacket adopt", "workpacket adopt WP-1-Parser-v1 --prefer board"),
)


DECLARED: Final = {command.name: command for command in (_NEW, _REFINE, _ADOPT)}
