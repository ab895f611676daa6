"""Whether a change may replace the root of trust, according to the base and its CI configuration."""

from __future__ import annotations

from collections.abc import Iterator

from workpacket.approvals.facts import PolicyFiles
from workpacket.approvals.reanchor import VARIABLE, PolicyChange, named_in, read_record, unfit_record
from workpacket.errors import WorkpacketError
from workpacket.git.revisions import head_commit
from workpacket.git.run import run_git
from workpacket.model.layout import POLICY_PATH, REANCHORED_PATH, REVOKED_PATH, SIGNERS_PATH
from workpacket.problem import Location, Problem
from workpacket.shell.approvals.envelopes import read_file
from workpacket.shell.approvals.subject import policy_files
from workpacket.shell.base import policy_digest
from workpacket.shell.tree import read_bytes
from workpacket.text.source import DATA
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.git.repository import Repository
    from workpacket.shell.approvals.facts import Approvals

# The configuration files of hosts and build servers.
CI_CONFIGURATION = (
    ".github", ".gitlab", ".gitlab-ci.yml", ".ci", ".circleci", ".forgejo", ".gitea", ".woodpecker", ".woodpecker.yml",
    ".buildkite", ".drone.yml", ".travis.yml", ".azure-pipelines", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    "Jenkinsfile", ".builds", ".build.yml",
)  # fmt: skip
_OF_THE_POLICY = frozenset({POLICY_PATH, SIGNERS_PATH, REVOKED_PATH, REANCHORED_PATH})
_NO_MATCH = 1


class RootOfTrust(Value):
    """The state of the root of trust. `replaced`: whether this change adds a new root that the base vouches for, so
    that no key needs to approve it.
    """

    findings: tuple[Problem, ...]
    replaced: bool


def root_of_trust(approvals: Approvals) -> RootOfTrust:
    """Return the state of the root of trust on the base and in the change."""
    after = read_file(approvals.tree, REANCHORED_PATH) or b""
    before = approvals.base.policy_files.get(REANCHORED_PATH, b"")
    repository, base = approvals.repository, approvals.base.commit
    brought = tuple(_brought(repository, base))
    if before == after:
        return RootOfTrust((*brought, *_told(after)), replaced=False)
    named = _named(repository, base) if base else frozenset()
    against = tuple(_against(approvals, before, after, named))
    return RootOfTrust((*brought, *(against or _told(after))), replaced=not against)


def _told(record: bytes) -> Iterator[Problem]:
    """Report every entry in every check: readers should know that the chain of approvals was once broken."""
    roots = read_record(record) if record else ()
    if isinstance(roots, Problem):
        yield roots
        return
    for root in roots:
        yield Problem("policy_reanchored", root.sentence, Location(REANCHORED_PATH), severity="info")


def roots_here(root: str) -> list[str]:
    """Describe the roots in the record of the work tree, for commands that verify nothing."""
    try:
        record = read_bytes(root, REANCHORED_PATH, DATA.size)
    except OSError:
        return []
    return [each.message for each in _told(record)]


def _against(approvals: Approvals, before: bytes, after: bytes, named: frozenset[str]) -> Iterator[Problem]:
    here, there = policy_files(approvals.tree), approvals.base.policy_files
    changed = {path for path in here.keys() | there.keys() if here.get(path) != there.get(path)}
    for path in sorted(changed - _OF_THE_POLICY):
        yield Problem(
            "reanchor_unfit",
            f"a change with a new root of trust may change only the policy, but {path} differs",
            Location(path),
        )
    files = PolicyFiles(here.get(POLICY_PATH), here.get(SIGNERS_PATH), here.get(REVOKED_PATH))
    replaced, policy = policy_digest(approvals.base.policy), policy_digest(files)
    yield from unfit_record(PolicyChange(before, after, replaced, policy, named))


def _named(repository: Repository, commit: str) -> frozenset[str]:
    """Return the digests named in the CI configuration of one commit.

    Each call covers one commit and omits file names. In a combined answer, the text or name of a file in one commit
    could be mistaken for an answer about the other.
    """
    # Read as text and without the attributes of the work tree, which could declare a file to be binary.
    options = ("-a", "-h", "--no-color", "--no-recurse-submodules", "-F", "-e", VARIABLE)
    answer = run_git(repository.root, "grep", *options, commit, "--", *CI_CONFIGURATION, check=False)
    if answer.status > _NO_MATCH:
        raise WorkpacketError("git_failed", f"git grep ended with {answer.status}: {answer.text.strip()}")
    return named_in(answer.text)


def _brought(repository: Repository, base: str) -> Iterator[Problem]:
    """Report the digests that HEAD names and the base does not."""
    head = head_commit(repository)
    if not base or head is None or head == base:
        return
    named = _named(repository, head)
    for digest in sorted(named - _named(repository, base)) if named else ():
        yield Problem("reanchor_named", f"the CI configuration names the policy {digest} as a new root of trust")
