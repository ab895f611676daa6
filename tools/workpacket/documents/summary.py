"""What one document tells the rest of the repository.

Rules across files, `list`, the board and the registry look at summaries only, never at text, so ten thousand packets
can be compared without reading one of them again. A summary is plain JSON, because the cache keeps it. A place is
[line, column].
"""

from __future__ import annotations

from typing import TypedDict

Place = tuple[int, int]
# A word with its place: [text, line, column].
Mention = tuple[str, int, int]


class WorkSummary(TypedDict):
    """A stub, a packet or a work package."""

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
    # Dependencies that another passage of the same file states (prose, a `--base` option).
    also_depends: list[Mention]
    subtasks: list[Mention]
    owned_files: list[Mention]
    # What a packet was signed with, and the refinement file that it names.
    signature: Mention
    refinement: Mention


class BoardEntry(TypedDict):
    """An entry whose id is one. `token` is '' where the one written stands for no lane or for several."""

    id: str
    base: str
    token: str
    section: str
    place: Place
    token_place: Place


class BoardSummary(TypedDict):
    entries: list[BoardEntry]
    sections: list[Mention]


class RegistryRow(TypedDict):
    base: str
    active_path: str
    active: str
    board_section: str
    board_id: str
    supersedes: list[str]
    # Ids of the stubs that the notes say it was activated from.
    from_stub: list[str]
    place: Place
    active_place: Place
    board_place: Place
    notes_place: Place


class RegistrySummary(TypedDict):
    rows: list[RegistryRow]
    # Where a row would be added.
    end_place: Place


class AnchorSummary(TypedDict):
    """One place of the specification that a refinement rests on, as written."""

    place: Place
    start: str
    end: str
    token: str
    excerpt: str


class RefinementSummary(TypedDict):
    id: str
    place: Place
    approved: bool
    signature: Mention
    spec: str
    spec_place: Place
    spec_digest: str
    anchors: list[AnchorSummary]


class SignatureRow(TypedDict):
    """A row of the audit: the signature, and the packets that the row names."""

    signature: Mention
    packets: list[Mention]


class SignatureSummary(TypedDict):
    has_table: bool
    rows: list[SignatureRow]


class GateSummary(TypedDict):
    """A gate log: every packet that it names, once an event."""

    packets: list[Mention]


class RoleSummary(TypedDict):
    """A role's checkpoint, or the note that a feature is finished."""

    feature: str
    team: str
    agent: str
    status: str
    is_checkpoint: bool
    place: Place
    status_place: Place


class BatchSummary(TypedDict):
    """One of the four files of a batch folder."""

    scope: str
    tasks: list[Mention]
    done: list[Mention]
    pending: list[Mention]
    depends: list[tuple[Mention, Mention]]
    place: Place


EMPTY_MENTION: Mention = ("", 0, 0)
