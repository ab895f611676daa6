"""Summaries: what a document tells the rest of the repository. Also the cycles in the dependencies that summaries
contain.

Rules across files, `list`, the board and the registry use only summaries, never the text, so that ten thousand packets
can be compared without being read again. A summary is plain JSON, because it is cached. A position is [line, column].
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from workpacket.value import TypedDict

Place = tuple[int, int]
# A word with its place: [text, line, column].
Mention = tuple[str, int, int]


class EvidenceSummary(TypedDict):
    """A command that a packet lists as evidence: its log, the log's digest, and the lines quoted from it."""

    place: Place
    log: Mention
    sha256: Mention
    proof: str
    proof_place: Place
    command: str


class DescribedWork(TypedDict):
    """The fields that stubs, packets and work packages share."""

    id: str
    base: str
    title: str
    place: Place
    lanes: list[str]
    status: str
    status_place: Place
    created: str
    risk: str
    depends: list[Mention]


class WorkSummary(DescribedWork):
    """A stub or a packet."""

    # The signature of a packet, and the refinement file that it names.
    signature: Mention
    earlier_signatures: list[str]
    refinement: Mention
    # The specification that a stub names, and the versions that a packet names.
    spec_target: Mention
    spec_versions: list[Mention]
    # The sections of the specification that the work is based on, as written.
    anchors: list[Mention]
    # The specification that the anchor of a light packet names.
    light_spec: Mention
    # The evidence in a packet.
    evidence: list[EvidenceSummary]
    # The form of a packet; '' for a stub.
    form: str
    # What a validated packet contains nothing of: `verdict`, `evidence`.
    unproven: list[str]


class PackageSummary(DescribedWork):
    """A work package of a mission. Ids of packages are scoped: `<mission>--WP07`."""

    mission: str
    subtasks: list[Mention]
    owned_files: list[Mention]
    # Dependencies that only the text states: the package ('' for "none"), `command` or `sentence`, and the place.
    unlisted: list[tuple[str, str, int, int]]
    dependencies_line: int


class EntrySummary(TypedDict):
    """An entry with a valid id. `token` is '' if the token as written is invalid or ambiguous."""

    id: str
    base: str
    token: str
    section: str
    place: Place
    token_place: Place


class BoardSummary(TypedDict):
    entries: list[EntrySummary]
    sections: list[Mention]


class RowSummary(TypedDict):
    base: str
    active_path: str
    active: str
    board_section: str
    board_id: str
    supersedes: list[str]
    # Ids of the stubs from which it was activated, according to the notes.
    from_stub: list[str]
    place: Place
    active_place: Place
    board_place: Place
    notes_place: Place


class RegistrySummary(TypedDict):
    rows: list[RowSummary]
    # The place where a row would be added.
    end_place: Place


class AnchorSummary(TypedDict):
    """One location in the specification on which a refinement is based, as written."""

    place: Place
    name_place: Place
    end_place: Place
    name: str
    start: str
    end: str
    token: str
    excerpt: str


class RefinementSummary(TypedDict):
    id: str
    place: Place
    approved: bool
    review_status: str
    enrichment_needed: bool
    signature: Mention
    spec: str
    spec_place: Place
    spec_digest: str
    spec_sha1: str
    anchors: list[AnchorSummary]


class SignatureRow(TypedDict):
    """A row of the audit: the signature, and the packets in the row."""

    signature: Mention
    packets: list[Mention]


class SignatureSummary(TypedDict):
    has_table: bool
    rows: list[SignatureRow]


class GateSummary(TypedDict):
    """A gate log: the packets in it, one for each event. `stated` are its current verdicts and signatures: the packet,
    which of the two, and the value.
    """

    packets: list[Mention]
    stated: list[tuple[str, str, Mention]]


class RoleSummary(TypedDict):
    """A role's checkpoint, or another note. `finishes` is the feature that a summary declares complete."""

    feature: str
    team: str
    agent: str
    status: str
    phase: str
    is_checkpoint: bool
    place: Place
    phase_place: Place
    status_place: Place
    agent_place: Place
    finishes: str


class SidecarSummary(TypedDict):
    """A checkpoint commit of a run: the number of its milestone (-1 if it has none), and its time."""

    run: str
    milestone: int
    created: str
    milestone_place: Place
    created_place: Place


class BatchSummary(TypedDict):
    """One of the four files of a batch folder.

    `depends` are pairs of a task and its dependency; the direction of the pairs in `loose` is unknown. `statuses` and
    `files` are keyed by task. `next` and `parallel` describe the next batch. `advice` is what the review of the scope
    recommends.
    """

    scope: str
    tasks: list[Mention]
    done: list[Mention]
    pending: list[Mention]
    depends: list[tuple[Mention, Mention]]
    place: Place
    satisfied: list[Mention]
    statuses: list[tuple[str, str]]
    files: list[tuple[str, list[str]]]
    loose: list[tuple[Mention, Mention]]
    next: list[Mention]
    parallel: bool
    advice: Mention


EMPTY_BATCH: BatchSummary = {
    "scope": "",
    "tasks": [],
    "done": [],
    "pending": [],
    "depends": [],
    "place": (1, 1),
    "satisfied": [],
    "statuses": [],
    "files": [],
    "loose": [],
    "next": [],
    "parallel": False,
    "advice": ("", 0, 0),
}


def circles(edges: Mapping[str, Collection[str]], roots: Iterable[str]) -> Iterator[list[str]]:
    """Yield each cycle that a dependency closes, starting and ending with the same name. The last two names are the
    dependency that closes the cycle. Names missing from `edges` have no dependencies. The function is not recursive,
    because ten thousand packets may form one chain.
    """
    done: set[str] = set()
    for root in roots:
        path: list[str] = []
        depth: dict[str, int] = {}
        waiting: list[Iterator[str]] = []
        step = root if root not in done else None
        while step is not None or waiting:
            if step is not None:
                done.add(step)
                depth[step] = len(path)
                path.append(step)
                waiting.append(iter(edges.get(step, ())))
            other, step = next(waiting[-1], None), None
            if other is None:
                waiting.pop()
                del depth[path.pop()]
            elif other in depth:
                yield [*path[depth[other] :], other]
            elif other not in done and other in edges:
                step = other
