"""The paths of each kind of document. Data only: this module is imported at every start, before anything large."""

from __future__ import annotations

from workpacket.model.layout import (
    ATTESTATIONS_FOLDER,
    AUDIT_PATH,
    BOARD_PATH,
    CHECKPOINTS_FOLDER,
    GATES_FOLDER,
    GOVERNANCE_FOLDER,
    LOG_FOLDER,
    PACKETS,
    POLICY_PATH,
    REFINEMENTS,
    REGISTRY_PATH,
    ROLES_FOLDER,
    SHARED_FOLDER,
    SPEC_POINTER,
    STUBS,
    TEMPLATES_FOLDER,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    # The prefix of a name, its suffix, its minimum length, and the kind of the document.
    NamePattern: TypeAlias = tuple[str, str, int, str]

# The first matching pattern decides. `*` represents one or more characters of one path segment. Only the folders in
# `ROOTS` are searched.
PLACES: tuple[tuple[str, str], ...] = (
    (f"{STUBS}/*.md", "stub"),
    (f"{PACKETS}/*.md", "packet"),
    (f"{PACKETS}/*/packet.md", "packet"),
    (f"{PACKETS}/*/refinement.md", "refinement"),
    (f"{REFINEMENTS}/*.md", "refinement"),
    (BOARD_PATH, "task_board"),
    (REGISTRY_PATH, "registry"),
    (AUDIT_PATH, "signature_audit"),
    (SPEC_POINTER, "spec_pointer"),
    (f"{SHARED_FOLDER}/ORCHESTRATOR_GATES.json", "orchestrator_gates"),
    (f"{ROLES_FOLDER}/orchestrator/ORCHESTRATOR_GATES.json", "orchestrator_gates"),
    (f"{GATES_FOLDER}/*.json", "validator_gates"),
    (POLICY_PATH, "policy"),
    ("kitty-specs/*/tasks/WP*.md", "work_package"),
    ("specs/active/*/checkpoint.yaml", "batch_checkpoint"),
    ("specs/active/*/tasks.yaml", "batch_tasks"),
    ("specs/active/*/dependencies.yaml", "batch_dependencies"),
    ("specs/active/*/validation.yaml", "batch_validation"),
    ("scopes/active/*/checkpoint.yaml", "batch_checkpoint"),
    ("scopes/active/*/tasks.yaml", "batch_tasks"),
    ("scopes/active/*/dependencies.yaml", "batch_dependencies"),
    ("scopes/active/*/validation.yaml", "batch_validation"),
    ("docs/progress/*.md", "role_progress"),
    (".runr/checkpoints/*.json", "commit_sidecar"),
)

ROOTS = (GOVERNANCE_FOLDER, "kitty-specs", "specs/active", "scopes/active", "docs/progress", ".runr/checkpoints")

# Folders below a root that contain no documents of these kinds and may be very large.
SKIPPED_FOLDERS = frozenset({LOG_FOLDER, ATTESTATIONS_FOLDER, CHECKPOINTS_FOLDER, TEMPLATES_FOLDER})

# Files that people keep next to documents of a kind.
NOT_DOCUMENTS = frozenset({"README.md", "index.md", "_template.md", "index.json"})


def kind_of(path: str) -> str | None:
    """Return the kind of the document at `path` (relative to the repository, with '/'), if it is one."""
    folder, _, name = path.rpartition("/")
    return kind_of_name(name, names_in(folder))


def kind_of_name(name: str, names: tuple[NamePattern, ...]) -> str | None:
    """Return the kind of the file `name` in a folder with these patterns, taken from `names_in`."""
    for before, after, shortest, kind in names:
        if len(name) >= shortest and name.startswith(before) and name.endswith(after) and name not in NOT_DOCUMENTS:
            return kind
    return None


def is_near_miss(name: str, names: tuple[NamePattern, ...]) -> bool:
    """Whether a file that is not a document was probably meant to be one: it has a different extension, a different
    case, or a name very similar to that of a document in this folder.
    """
    if name in NOT_DOCUMENTS or name.startswith("."):
        return False
    stem = name.partition(".")[0].casefold().replace("_", "").replace("-", "")
    for before, after, shortest, _ in names:
        single = shortest == len(before) + len(after)
        if single and stem == before.partition(".")[0].casefold().replace("_", "").replace("-", ""):
            return True
        # No regular expression, because every command imports this module. `wp` alone begins many other names.
        beginning = before.casefold().replace("_", "").replace("-", "")
        numbered = stem.startswith("wp") and stem[2:3].isdigit()
        if not single and (numbered or (beginning not in {"", "wp"} and stem.startswith(beginning))):
            return True
    return False


_MOST_FOLDERS = 256
# What `names_in` found. Every command asks, and functools would take as long to import as all of this module.
_KNOWN_NAMES: dict[str, tuple[NamePattern, ...]] = {}


def names_in(folder: str) -> tuple[NamePattern, ...]:
    """Return the patterns of document names in `folder`, computed once per folder, which may contain ten thousand
    files.
    """
    known = _KNOWN_NAMES.get(folder)
    if known is None:
        if len(_KNOWN_NAMES) >= _MOST_FOLDERS:
            _KNOWN_NAMES.clear()
        known = _KNOWN_NAMES[folder] = _names_in(folder)
    return known


def _names_in(folder: str) -> tuple[NamePattern, ...]:
    segments = folder.split("/")
    patterns: list[NamePattern] = []
    for place, kind in PLACES:
        *folders, name = place.split("/")
        if len(folders) == len(segments) and all(map(_fits, folders, segments)):
            before, star, after = name.partition("*")
            patterns.append((before, after, len(before) + len(star) + len(after), kind))
    return tuple(patterns)


def _fits(pattern: str, segment: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == segment
    return len(segment) > len(before) + len(after) and segment.startswith(before) and segment.endswith(after)
