"""Whether a change may replace the root of trust, asked of the base and of its CI configuration."""

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
from workpacket.text.limits import DATA
from workpacket.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workpacket.git.repository import Repository
    from workpacket.shell.approvals.facts import Approvals

# Where hosts and build servers look for what they are to run.
CI_CONFIGURATION = (
    ".github", ".gitlab", ".gitlab-ci.yml", ".ci", ".circleci", ".forgejo", ".gitea", ".woodpecker", ".woodpecker.yml",
    ".buildkite", ".drone.yml", ".travis.yml", ".azure-pipelines", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    "Jenkinsfile", ".builds", ".build.yml",
)  # fmt: skip
_OF_THE_POLICY = frozenset({POLICY_PATH, SIGNERS_PATH, REVOKED_PATH, REANCHORED_PATH})
_NO_MATCH = 1


class RootOfTrust(Value):
    """`replaced`: whether this change brings a new root that the base vouches for, so that no key has to approve it."""

    findings: tuple[Problem, ...]
    replaced: bool


def root_of_trust(approvals: Approvals) -> RootOfTrust:
    """What there is to say of the root of trust, in the base and in the change."""
    after = read_file(approvals.tree, REANCHORED_PATH) or b""
    before = approvals.base.policy_files.get(REANCHORED_PATH, b"")
    named = _named(approvals.repository, approvals.base.commit, asked=before != after)
    brought = tuple(_brought(named))
    if before == after:
        return RootOfTrust((*brought, *_told(after)), replaced=False)
    against = tuple(_against(approvals, before, after, named.get(approvals.base.commit, frozenset())))
    return RootOfTrust((*brought, *(against or _told(after))), replaced=not against)


def _told(record: bytes) -> Iterator[Problem]:
    """Every entry, for ever: readers of an output should know that the line of approvals was broken once."""
    roots = read_record(record) if record else ()
    if isinstance(roots, Problem):
        yield roots
        return
    for root in roots:
        yield Problem("policy_reanchored", root.sentence, Location(REANCHORED_PATH), severity="info")


def roots_here(root: str) -> list[str]:
    """The same in sentences, as the record of the work tree says it, for commands that judge nothing."""
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
            "reanchor_unfit", f"a new root of trust changes nothing but the policy; {path} differs", Location(path)
        )
    files = PolicyFiles(here.get(POLICY_PATH), here.get(SIGNERS_PATH), here.get(REVOKED_PATH))
    replaced, policy = policy_digest(approvals.base.policy), policy_digest(files)
    yield from unfit_record(PolicyChange(before, after, replaced, policy, named))


def _named(repository: Repository, base: str, *, asked: bool) -> dict[str, frozenset[str]]:
    """By commit, the base and HEAD, the digests that its CI configuration names."""
    head = head_commit(repository) or ""
    commits = list(dict.fromkeys(filter(None, (base, head))))
    if not base or (len(commits) < 2 and not asked):
        return {}
    # As text and without the attributes of the work tree, which could declare a file to be binary.
    options = ("-a", "-z", "--no-color", "--full-name", "-F", "-e", VARIABLE)
    answer = run_git(repository.root, "grep", *options, *commits, "--", *CI_CONFIGURATION, check=False)
    found = dict.fromkeys((base, head), frozenset[str]())
    if answer.status > _NO_MATCH:
        raise WorkpacketError("git_failed", f"git grep ended with {answer.status}: {answer.text.strip()}")
    for line in answer.text.splitlines():
        place, _, text = line.partition("\0")
        commit = place.partition(":")[0]
        if commit in found:
            found[commit] |= named_in(text)
    return found if head else {base: found[base]}


def _brought(named: dict[str, frozenset[str]]) -> Iterator[Problem]:
    """The digests that HEAD names and the base does not."""
    sides = list(named.values())
    for digest in sorted(sides[1] - sides[0]) if len(sides) > 1 else ():
        yield Problem("reanchor_named", f"the CI configuration names the policy {digest} as a new root of trust")
