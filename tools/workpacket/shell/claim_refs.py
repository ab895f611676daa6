"""Claims that apply across clones: a reference for each packet; the remote allows only one push to create it.

The reference points to a commit without files, whose message says who holds the packet, until when, and by which lease;
the lease is random, so no two claims are the same commit. Every change to the reference states the value that it
replaces (`--force-with-lease`), and git's servers compare the two while they hold a lock, so only one of many pushes
succeeds.

A claim may be replaced by anyone once its lease has expired, by the clone that made it, and by a clone whose log has
the event that recorded the lease, because that log says what became of the claim. A claim is therefore not deleted when
its holder releases or submits the packet: until that log is merged, another claim would contradict it.

`refs/workpacket/own/` and `refs/workpacket/seen/` in each clone have the claims that it made and found.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from workpacket.git.repository import Repository, commit_at
from workpacket.git.run import Answer, run_git
from workpacket.ledger.log import Log
from workpacket.lifecycle.facts import PacketFacts
from workpacket.model.canonical import canonical_bytes
from workpacket.model.layout import SEEN_CLAIMS
from workpacket.problem import Problem, WorkpacketError
from workpacket.value import Value

PATIENCE: Final = 10.0  # seconds for each exchange with the remote
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.1  # seconds, longer after each attempt
_OWN: Final = "refs/workpacket/own/"
_HEADING: Final = "claim of a work packet"
# Neither git nor ssh asks for a password, which an agent could not type.
_SILENT: Final[Mapping[str, str]] = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "true", "SSH_ASKPASS": "true"}


class RemoteClaim(Value):
    """A claim as described by its reference; `commit` is what the reference points to, and `seen` is the time at which
    it was fetched, if known.
    """

    packet: str
    holder: str
    lease: str
    expires_at: str
    commit: str = ""
    seen: str = ""


class Unarbitrated(Value):
    """The remote could not decide, for this reason."""

    why: str


class ClaimRefs:
    """The references at one remote. `pattern` is the name of a reference, with `{id}` for the packet."""

    def __init__(self, repository: Repository, remote: str, pattern: str) -> None:
        self.repository = repository
        self.remote = remote
        self.pattern = pattern

    def ref(self, packet: str) -> str:
        return self.pattern.replace("{id}", packet)

    def take(self, wanted: RemoteClaim, now: str, known: Container[str]) -> RemoteClaim | Unarbitrated:
        """Claim the packet, and return the claim that is now valid: ours, or someone else's. `known` are the leases in
        this clone's log.
        """
        ours = self._written(wanted)
        expected = refusal = ""
        # Someone else may claim the packet between looking and pushing, and git refuses while it holds the lock.
        for attempt in range(_ATTEMPTS):
            time.sleep(attempt * _PAUSE)
            refused = self._push(ours.commit, ours.packet, expected=expected)
            found = ours if refused is None else self.find(ours.packet)
            if isinstance(found, RemoteClaim) and found.commit == ours.commit:
                for name in (_OWN, SEEN_CLAIMS):
                    self._git("update-ref", name + ours.packet, ours.commit)
                return ours
            if isinstance(found, Unarbitrated):
                return found
            if found is not None and not self._replaceable(found, now, known):
                return found
            expected = found.commit if found is not None else ""
            refusal = refused.complaint if refused is not None else ""
        return Unarbitrated(refusal)

    def _replaceable(self, found: RemoteClaim, now: str, known: Container[str]) -> bool:
        mine = found.commit == commit_at(self.repository, _OWN + found.packet)
        ended = bool(found.expires_at) and found.expires_at <= now
        return mine or ended or found.lease in known

    def give_back(self, claim: RemoteClaim) -> None:
        """Delete the reference, because the claim was not recorded in the log; a reference that has been replaced is
        kept."""
        self._push("", claim.packet, expected=claim.commit)
        self._git("update-ref", "-d", _OWN + claim.packet, claim.commit)

    def find(self, packet: str) -> RemoteClaim | Unarbitrated | None:
        """Return the claim on a packet at the remote; None if there is none."""
        seen = SEEN_CLAIMS + packet
        answer = self._git("ls-remote", "--quiet", self.remote, self.ref(packet))
        if answer.status != 0:
            return Unarbitrated(answer.complaint)
        if not answer.output:
            self._git("update-ref", "-d", seen)
            return None
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--depth=1")
        answer = self._git("fetch", *options, self.remote, f"+{self.ref(packet)}:{seen}")
        if answer.status != 0:
            return Unarbitrated(answer.complaint)
        self._note_when_seen(packet)
        return _read(self.repository, packet, seen)

    def _written(self, claim: RemoteClaim) -> RemoteClaim:
        said = {"packet": claim.packet, "holder": claim.holder, "lease": claim.lease, "expires_at": claim.expires_at}
        message = f"{_HEADING}\n\n".encode() + canonical_bytes(said)
        root = self.repository.root
        empty = run_git(root, "hash-object", "-t", "tree", "-w", "--stdin").text.strip()
        names = {f"GIT_{role}_NAME": claim.holder for role in ("AUTHOR", "COMMITTER")}
        names |= {f"GIT_{role}_EMAIL": "claim@workpacket.invalid" for role in ("AUTHOR", "COMMITTER")}
        made = run_git(root, "commit-tree", "--no-gpg-sign", empty, stdin=message, environment=names)
        return RemoteClaim(claim.packet, claim.holder, claim.lease, claim.expires_at, made.text.strip())

    def _push(self, commit: str, packet: str, *, expected: str) -> Answer | None:
        """Replace the expected commit ('' if there must not be one); return git's answer if the remote refused."""
        ref = self.ref(packet)
        options = ("--porcelain", "--no-verify", "--no-follow-tags", "--no-signed", "--recurse-submodules=no")
        answer = self._git("push", *options, f"--force-with-lease={ref}:{expected}", self.remote, f"{commit}:{ref}")
        return None if answer.status == 0 else answer

    def fetch(self) -> str:
        """Fetch the remote's branches and all its claims; return why that was not possible, or ''."""
        quietly = ("fetch", "--quiet", "--no-recurse-submodules")
        claims = ("--prune", "--no-tags", "--no-write-fetch-head", self.remote, f"+{self.ref('*')}:{SEEN_CLAIMS}*")
        for words in ((*quietly, self.remote), (*quietly, *claims)):
            answer = self._git(*words)
            if answer.status != 0:
                return answer.complaint
        for packet in seen_claims(self.repository):
            self._note_when_seen(packet)
        return ""

    def _note_when_seen(self, packet: str) -> None:
        """Set the time of the reference's file to the current time, because git leaves it unchanged if nothing has
        changed."""
        # A packed reference has no file of its own.
        with suppress(OSError):
            os.utime(self.repository.common_dir / (SEEN_CLAIMS + packet))

    def _git(self, *words: str) -> Answer:
        ssh = os.environ.get("GIT_SSH_COMMAND") or self.repository.settings.get("core.sshcommand", "") or "ssh"
        environment = {**_SILENT, "GIT_SSH_COMMAND": f"{ssh} -oBatchMode=yes"}
        try:
            return run_git(self.repository.root, *words, check=False, timeout=PATIENCE, environment=environment)
        except WorkpacketError as error:
            if error.code != "git_timeout":
                raise
            return Answer(128, b"", error.message)


def seen_claims(repository: Repository) -> dict[str, RemoteClaim]:
    """Return the claims as last fetched, by packet."""
    answer = run_git(
        repository.root, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(contents)%00", SEEN_CLAIMS
    )
    parts = answer.text.split("\0")
    rows = zip(parts[::3], parts[1::3], parts[2::3], strict=False)
    named = ((ref.strip().removeprefix(SEEN_CLAIMS), commit, message) for ref, commit, message in rows)
    return {name: _claim(repository, name, commit, message) for name, commit, message in named}


def claims_elsewhere(repository: Repository, packets: Mapping[str, PacketFacts], now: str) -> list[RemoteClaim]:
    """Return, by packet, other clones' claims on these packets, as last fetched: those that are still valid and are not
    in the log here.
    """
    return [
        claim
        for name, claim in sorted(seen_claims(repository).items())
        if name in packets
        and (not claim.expires_at or claim.expires_at > now)
        and claim.lease not in leases_in(packets[name].log)
    ]


def leases_in(log: Log) -> frozenset[str]:
    return frozenset(event.text("lease") or "" for event in log.events)


def held_elsewhere(claim: RemoteClaim, remote: str, ref: str) -> Problem:
    """Return the refusal for those who do not hold the claim."""
    until = f"until {claim.expires_at}" if claim.expires_at else f"with no readable expiry time; see: git log {ref}"
    source = f"{remote} at {claim.seen}" if claim.seen else remote
    message = f"{claim.holder} holds {claim.packet} in another clone, {until}, according to {source}"
    hint = f"git pull, once the work is merged; if it was given up: git push {remote} :{ref}"
    return Problem("claimed_by_other", message, hint=hint)


def _read(repository: Repository, packet: str, ref: str) -> RemoteClaim:
    commit = commit_at(repository, ref) or ""
    message = run_git(repository.root, "log", "-1", "--no-patch", "--format=%B", commit, check=False).text
    return _claim(repository, packet, commit, message)


def _claim(repository: Repository, packet: str, commit: str, message: str) -> RemoteClaim:
    """Return the claim that a commit describes. Anyone who may push can write anything there, so an unreadable claim
    counts as one without an expiry.
    """
    try:
        said = json.loads(message.partition("\n\n")[2])
    except ValueError:
        said = {}
    texts = said if isinstance(said, dict) else {}
    holder, lease, end = (str(texts.get(key, ""))[:200] for key in ("holder", "lease", "expires_at"))
    try:
        changed = (repository.common_dir / SEEN_CLAIMS / packet).stat().st_mtime
        seen = datetime.fromtimestamp(int(changed), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OSError:
        seen = ""  # git has packed the reference since
    return RemoteClaim(packet, holder or "someone", lease, end, commit, seen)
