"""The layout of governance in a repository: every path below `.GOV`, and the size limits of files.

Data only, without imports: every layer uses it, and every command reads it at start-up.
"""

from __future__ import annotations

GOVERNANCE_FOLDER = ".GOV"

# Files in these folders are only ever added.
LOG_FOLDER = ".GOV/log"
ATTESTATIONS_FOLDER = ".GOV/attestations"
CHECKPOINTS_FOLDER = ".GOV/checkpoints"
APPEND_ONLY_FOLDERS = (LOG_FOLDER, ATTESTATIONS_FOLDER, CHECKPOINTS_FOLDER)
ENVELOPE_SUFFIX = ".dsse.json"

STUBS = ".GOV/task_packets/stubs"
PACKETS = ".GOV/task_packets"
REFINEMENTS = ".GOV/refinements"

POLICY_FOLDER = ".GOV/policy"
POLICY_PATH = ".GOV/policy/policy.toml"
SIGNERS_PATH = ".GOV/policy/allowed_signers"
REVOKED_PATH = ".GOV/policy/revoked_keys"
REANCHORED_PATH = ".GOV/policy/reanchored.toml"
BASELINE_PATH = ".GOV/policy/baseline.json"

SHARED_FOLDER = ".GOV/roles_shared"
BOARD_PATH = ".GOV/roles_shared/TASK_BOARD.md"
REGISTRY_PATH = ".GOV/roles_shared/WP_TRACEABILITY_REGISTRY.md"
AUDIT_PATH = ".GOV/roles_shared/SIGNATURE_AUDIT.md"
SPEC_POINTER = ".GOV/roles_shared/SPEC_CURRENT.md"

ROLES_FOLDER = ".GOV/roles"
GATES_FOLDER = ".GOV/validator_gates"
SPECIFICATIONS_FOLDER = ".GOV/spec"
TEMPLATES_FOLDER = ".GOV/templates"
SCHEMAS_FOLDER = ".GOV/schemas"

# The prefix of files that a command is about to move into place, so that no reader mistakes them for the final file.
TEMPORARY_PREFIX = ".workpacket-"

LARGEST_EVENT = 256 * 1024
# In a larger event, someone could write text for which the pattern for usual events takes long.
LARGEST_USUAL_EVENT = 16 * 1024
# A YAML, JSON or TOML file: a policy, an envelope, the front matter of a document.
LARGEST_DATA = 256 * 1024
# The task board and the traceability registry: one file that names every packet of a repository.
LARGEST_REGISTER = 8 * 1024 * 1024
LARGEST_MARKDOWN = 2 * 1024 * 1024
# An entry of some 150 bytes for each known finding of a repository.
LARGEST_BASELINE = 16 * 1024 * 1024
# What a clone keeps outside of the repository about a policy that it saw.
LARGEST_PIN = 64 * 1024
# Read more of a write-once file than it may have, so that a file that is too large is noticed.
LARGEST_WRITE_ONCE = 512 * 1024
LARGEST_FILE = 64 * 1024 * 1024  # of any file whose bytes are compared
LARGEST_LOCKFILE = 32 * 1024 * 1024
LARGEST_SPECIFICATION = 32 * 1024 * 1024


def envelope_name(digest: str) -> str:
    """Return the name of the envelope with this SHA-256."""
    return f"{digest}{ENVELOPE_SUFFIX}"


def envelope_path(digest: str) -> str:
    return f"{ATTESTATIONS_FOLDER}/{envelope_name(digest)}"


def stub_path(packet: str) -> str:
    return f"{STUBS}/{packet}.md"


def packet_paths(packet: str) -> tuple[str, str]:
    """Return the two possible paths of a packet; the first one that exists counts."""
    return f"{PACKETS}/{packet}.md", f"{PACKETS}/{packet}/packet.md"


def refinement_paths(packet: str) -> tuple[str, str]:
    """Return the two possible paths of a refinement; the first one that exists counts."""
    return f"{REFINEMENTS}/{packet}.md", f"{PACKETS}/{packet}/refinement.md"


# In the attribute file of the governance folder: without these lines, the bytes of a file depend on the clone.
ATTRIBUTES_PATH = f"{GOVERNANCE_FOLDER}/.gitattributes"
ATTRIBUTE_LINES = ("* text=auto eol=lf", "log/** -text", "attestations/** -text", "checkpoints/** -text")

# The claims of other clones as last fetched, one reference a packet.
SEEN_CLAIMS = "refs/workpacket/seen/"
