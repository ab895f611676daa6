"""Why a decision could not be given, and what the key doctor finds."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reason_tables.approval import gate, tampered
from workpacket.model.reasons import Reason


def _environment(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "environment", exit_code=exits.ENVIRONMENT)


def _conflict(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "conflict", exit_code=exits.CONFLICT)


REASONS: tuple[Reason, ...] = (
    tampered(
        "attest_unfit",
        "Event that rests on an envelope of something else",
        "An event names the envelopes that opened its gate. One of another packet or gate opened nothing.",
        "Take the event back, and move the packet by its command, which names the right ones.",
    ),
    gate(
        "approval_needs_terminal",
        "Approval where nobody can read",
        "The text is shown in full to a person at a terminal; without one, a program would be saying yes.",
        "Run the command in a terminal, or write the statement with `--statement-out FILE` and sign it elsewhere.",
    ),
    gate(
        "approval_not_given",
        "The words of approval were not typed",
        "Only the exact words count, so that nobody approves by pressing a key.",
        "Run the command again and type the words that it shows.",
    ),
    gate(
        "nothing_to_approve",
        "Nothing that this gate is about",
        "A gate is about the bytes of a file: the refinement, the packet, or a changed policy. It is not there.",
        "Write it first: `workpacket list` shows which packets there are.",
    ),
    gate(
        "refinement_unfillable",
        "Refinement without the fields for the person's word",
        "What is signed must itself say that it was approved, in USER_REVIEW_STATUS and USER_SIGNATURE of METADATA.",
        "Add the fields, as `workpacket check` says; then approve.",
    ),
    _conflict(
        "statement_unfit",
        "Statement about another text than the one that is here",
        "It was made for other bytes, or for another packet; attached, it would not count.",
        "Make a new one with `workpacket approve WP --statement-out FILE`, and sign that.",
    ),
    _conflict(
        "signature_minute_taken",
        "More approvals at once than there are tokens",
        "The token in the file holds name and minute, and each packet gets the next free one, up to an hour ahead.",
        "Run the command again in a minute.",
    ),
    Reason(
        "approval_unknown",
        "No envelope with this digest",
        "Only an approval that is there can be revoked.",
        "Look up the digest with `workpacket approvals list`.",
        "usage",
        exit_code=exits.USAGE,
    ),
    _environment(
        "approval_key_missing",
        "No key to approve with",
        "The public half of the key is read to find out whose it is.",
        "Make one with `workpacket key init`, or name yours with `--key`.",
    ),
    _environment(
        "key_without_passphrase",
        "Key without a passphrase",
        "Whatever runs under the person's account could approve with it.",
        "Run `workpacket key init` again and give a passphrase.",
    ),
    _conflict(
        "key_exists",
        "A key is there already",
        "Overwriting it would take away a key that allowed_signers may name.",
        "Name another file: `workpacket key init PATH`.",
    ),
    Reason(
        "agent_could_approve",
        "A program of this account could approve",
        "A key that may approve signed for us without asking anybody, and would sign for an agent as well.",
        "Follow the steps that `workpacket key doctor` lists, from the least effort to the most protection.",
        "approval",
    ),
    _environment(
        "history_shallow",
        "Clone without its full history",
        "First commit, base and time of use of an approval are looked up in the history, and here it is cut off.",
        "Run `git fetch --unshallow`; in CI check out with the full history (`fetch-depth: 0`).",
    ),
    _environment(
        "object_missing",
        "Clone that lacks an object of its history",
        "What a commit holds there is not in this clone, as after a clone with `--filter` or damage to the disk.",
        "Fetch all: `git config --unset remote.origin.partialclonefilter && git fetch --refetch`, or clone again "
        "without a filter; `git fsck` shows damage.",
    ),
    Reason(
        "revision_ambiguous",
        "Name of the base that means several commits",
        "A tag and a branch have this name. git would take the tag, which others may push than those who may merge.",
        "Name the base in full: `--base refs/remotes/origin/main`; delete the tag or branch that nobody needs.",
        "usage",
        exit_code=exits.USAGE,
    ),
)
