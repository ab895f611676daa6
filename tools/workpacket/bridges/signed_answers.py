"""Answers to the questions of runs, signed and verified like approvals, according to the base's policy.

If the policy has rules for the `answer` gate, an answer counts only with an envelope: the statement of a person with
one of the gate's roles, signed with their approval key, about the question, its text, the digest of its arguments, and
the answer. A program that acts on answers verifies them itself, because others can write to its store too:

    Runtime.open(None, Settings(verifier=SignedAnswers.here()))

Without such rules, every answer counts and is shown as claimed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from workpacket.approvals.envelope import EnvelopeFile, RepositoryName, Statement, Subject, pae, write_envelope
from workpacket.approvals.fields import read_instant
from workpacket.approvals.policy import ANSWER_GATE, GatePolicy, Policy, Trusted, policy_from_toml, read_policy_files
from workpacket.approvals.sshsig import read_signature
from workpacket.approvals.verify import RUNS, AnswerFacts, judge_answer
from workpacket.git.repository import Repository, find_repository, head_commit
from workpacket.model.layout import envelope_name
from workpacket.problem import Problem, WorkpacketError
from workpacket.runtime.records.events import AnswerToJudge, JudgedAnswer
from workpacket.shell.actor import moment
from workpacket.shell.approvals.decisions import role_of, signer_of
from workpacket.shell.base import Base, find_base, judge_pin, policy_at
from workpacket.shell.keys import OwnKey, find_key, sign

_VALIDITY = timedelta(days=1)  # the answer is recorded as soon as it is signed
_LONGEST_LINE = 200


class SignedAnswers:
    """Verifies the answers to questions of a repository's runs, by the policy on the base when an answer is judged for
    the first time: a worker that runs for weeks learns of revoked keys."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._judged: dict[AnswerToJudge, JudgedAnswer] = {}

    @classmethod
    def here(cls) -> SignedAnswers:
        """Return the verifier for the repository that contains the current folder."""
        return cls(find_repository(Path.cwd()))

    @cached_property
    def _base(self) -> Base:
        return find_base(self._repository)

    @cached_property
    def _policy(self) -> tuple[Trusted, GatePolicy] | Problem | None:
        """Return the policy and its rules for answers; None if the policy has none, or the reason why it cannot be
        used."""
        try:
            files = self._base.policy
        except WorkpacketError as fault:  # a shallow clone, for example: no answer counts if there is any policy
            head = head_commit(self._repository)
            return None if policy_at(self._repository, head or "").policy is None else fault.problem
        said = policy_from_toml(files.policy) if files.policy is not None else ()
        if isinstance(said, Policy) and said.rules_of(ANSWER_GATE) is None:
            return None
        if isinstance(said, tuple) and all(fault.code == "approvers_unnamed" for fault in said):
            return None
        pin, trusted = judge_pin(self._base), read_policy_files(files, files.revoked_keys)
        if isinstance(pin, Problem):
            return pin
        if not isinstance(trusted, Trusted):
            return trusted[0]
        return trusted, trusted.policy.gates[ANSWER_GATE]

    @property
    def required(self) -> bool:
        """Whether answers count only if they are signed."""
        return self._policy is not None

    # ---- verifying -----------------------------------------------------------------------------------------------

    def judge(self, answer: AnswerToJudge) -> JudgedAnswer:
        if answer not in self._judged:
            self._read_again()
            self._judged[answer] = self._judge(answer)
        return self._judged[answer]

    def _read_again(self) -> None:
        """Forget what was read if the base is another commit now."""
        known = self.__dict__.get("_base")
        if known is not None and find_base(self._repository).commit != known.commit:
            self._judged.clear()
            del self._base, self._policy

    def _judge(self, answer: AnswerToJudge) -> JudgedAnswer:
        if self._policy is None:
            return JudgedAnswer()
        if isinstance(self._policy, Problem):
            return JudgedAnswer(refusal=f"the policy on the base cannot be used: {self._policy.message}")
        if not answer.envelope:
            return JudgedAnswer(refusal="it is not signed, and the policy on the base requires a signature")
        trusted, rules = self._policy
        at = datetime.fromtimestamp(answer.at // 1_000_000, UTC)
        subject = Subject("answer", hashlib.sha256(answer.covered()).hexdigest())
        facts = AnswerFacts(subject, _decision(answer), _in_clear(answer), self._base.root_commit, at)
        data = answer.envelope.encode("utf-8", "surrogatepass")
        file = EnvelopeFile(envelope_name(hashlib.sha256(data).hexdigest()), data)
        judged = judge_answer(file, facts, rules, trusted)
        if judged.opened is None or judged.refusals:
            return JudgedAnswer(refusal="; ".join(one.message for one in judged.refusals))
        return JudgedAnswer(judged.opened.statement.approver, judged.opened.statement.nonce)

    # ---- signing -------------------------------------------------------------------------------------------------

    def signing(self, key: OwnKey | str = "") -> Callable[[AnswerToJudge], str]:
        """Return a function that signs an answer with this key, using the person's own ssh-keygen, which waits for the
        touch of a security key. `key` may be a path; by default, it is the key with which this person approves."""
        own = find_key(key) if isinstance(key, str) else key

        def signed(answer: AnswerToJudge) -> str:
            payload = self._statement(answer, own).payload()
            blob = sign(pae(payload), own.path)
            parsed = read_signature(blob)
            if isinstance(parsed, Problem):
                raise WorkpacketError.of(parsed)
            return write_envelope(payload, parsed.key.fingerprint, blob)[1].decode("ascii")

        return signed

    def _statement(self, answer: AnswerToJudge, key: OwnKey) -> Statement:
        if isinstance(self._policy, Problem):
            raise WorkpacketError.of(self._policy)
        if self._policy is None:
            raise ValueError("the policy on the base does not require signed answers")
        trusted, rules = self._policy
        signer, now = signer_of(trusted, key.public), moment()
        issued = read_instant(now.now)
        assert issued is not None
        return Statement(
            subjects=(Subject("answer", hashlib.sha256(answer.covered()).hexdigest()),),
            packet=RUNS,
            gate=ANSWER_GATE,
            decision=_decision(answer),
            role=role_of(trusted, signer.principal, rules.roles, ""),
            approver=signer.principal,
            repository=RepositoryName(trusted.policy.repository, self._base.root_commit),
            base=self._base.commit,
            spec=None,
            policy=trusted.digest,
            log_heads=(),
            scope=_in_clear(answer),
            issued_at=issued,
            expires_at=issued + _VALIDITY,
            nonce=now.nonce,
        )


def _decision(answer: AnswerToJudge) -> str:
    return "reject" if answer.answer == "no" else "approve"


def _in_clear(answer: AnswerToJudge) -> tuple[str, ...]:
    """Return the text that the statement shows its readers. The digest covers this text too."""
    rows = {"run": answer.run, "question": answer.question, "answer": answer.answer}
    shown = (f"{name}: {value}" for name, value in rows.items())
    return tuple(sorted("".join(c if c.isprintable() else "?" for c in row[:_LONGEST_LINE]) for row in shown))
