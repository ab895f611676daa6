"""Which path holds which kind of document. Data only: it is read on every start, before anything heavy is imported."""

from __future__ import annotations

# The first pattern that fits decides. `*` stands for one or more characters of one path segment, `<id>` for a segment
# that names a work packet. Folders in `ROOTS` are the only ones that are searched.
PLACES: tuple[tuple[str, str], ...] = (
    (".GOV/task_packets/stubs/*.md", "stub"),
    (".GOV/task_packets/*.md", "packet"),
    (".GOV/task_packets/*/packet.md", "packet"),
    (".GOV/task_packets/*/refinement.md", "refinement"),
    (".GOV/refinements/*.md", "refinement"),
    (".GOV/roles_shared/TASK_BOARD.md", "task_board"),
    (".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md", "registry"),
    (".GOV/roles_shared/SIGNATURE_AUDIT.md", "signature_audit"),
    (".GOV/roles_shared/SPEC_CURRENT.md", "spec_pointer"),
    (".GOV/roles_shared/ORCHESTRATOR_GATES.json", "orchestrator_gates"),
    (".GOV/roles/orchestrator/ORCHESTRATOR_GATES.json", "orchestrator_gates"),
    (".GOV/validator_gates/*.json", "validator_gates"),
    (".GOV/policy/policy.toml", "policy"),
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

ROOTS = (".GOV", "kitty-specs", "specs/active", "scopes/active", "docs/progress", ".runr/checkpoints")

# Folders below a root that hold no documents of these kinds and may be very large.
SKIPPED_FOLDERS = frozenset({".GOV/log", ".GOV/attestations", ".GOV/templates"})

# Files people keep beside documents of a kind.
NOT_DOCUMENTS = frozenset({"README.md", "index.md", "_template.md", "index.json"})


def kind_of(path: str) -> str | None:
    """The kind of the document at `path` (relative to the repository, with '/'), if it is one."""
    segments = path.split("/")
    if segments[-1] in NOT_DOCUMENTS:
        return None
    for pattern, kind in _by_length().get(len(segments), ()):
        if all(_fits(want, have) for want, have in zip(pattern, segments, strict=True)):
            return kind
    return None


def _fits(pattern: str, segment: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == segment
    return len(segment) > len(before) + len(after) and segment.startswith(before) and segment.endswith(after)


_INDEX: dict[int, list[tuple[list[str], str]]] = {}


def _by_length() -> dict[int, list[tuple[list[str], str]]]:
    if not _INDEX:
        for pattern, kind in PLACES:
            segments = pattern.split("/")
            _INDEX.setdefault(len(segments), []).append((segments, kind))
    return _INDEX
