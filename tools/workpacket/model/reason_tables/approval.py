"""Why an approval does not count: its file, its signature, the policy that judges it, or the gate it is for."""

from __future__ import annotations

from functools import partial

from workpacket.model import exits
from workpacket.model.reasons import reasons

_refused = partial(reasons, "approval")
_forged = partial(reasons, "approval", exit_code=exits.INTEGRITY)
_conflict = partial(reasons, "conflict")
_usage = partial(reasons, "usage")
_environment = partial(reasons, "environment")
_finding = partial(reasons, "approval", exit_code=exits.FINDINGS)

APPROVE_ANEW = "Have the approver run `workpacket approve` again."
_REPAIR_POLICY = "Repair the file on the base revision; `workpacket policy test` shows what is read from it."
_APPROVE = "Have the packet approved by `workpacket approve`."
_APPROVE_AND_REPLACE = (
    "Have it approved again with `workpacket approve`. What the base holds then needs `workpacket reapprove WP_ID`, "
    "which names the new approvals for it."
)
_RESTORE_FILE = "Restore the file from the base revision with `git checkout`; approvals are never edited."

FIT = _refused(f"""
    packet_mismatch: Approval of another packet
        A yes to one packet is not a yes to another.
        Remedy: {APPROVE_ANEW}

    gate_mismatch: Approval for another gate
        A yes to begin is not a yes to the result.
        Remedy: {APPROVE_ANEW}

    repository_mismatch: Approval from another repository
        Forks and copies hold the same packets; a yes given there was not given here.
        Remedy: {APPROVE_ANEW}

    subject_mismatch: Text that is not the one approved
        The approval covers the very bytes of the file. One byte more, and it was not what the person read.
        Remedy: Restore the approved text, or have the new text approved: `workpacket approve` shows the difference.

    approved_spec_moved: Specification that has changed since the approval
        The person judged the work against another version of the specification, or another place in it.
        Remedy: Check the packet against the specification in force, then have it approved again.

    contract_mismatch: Approval of another contract
        What a person approves is the contract: what, why, criteria, scope, risk, dependencies, evidence demanded.
        Remedy: Restore the approved contract, or have the new one approved; `workpacket contract WP` shows it.

    contract_unreadable: Packet without a contract that could be approved
        A part of the contract is missing, appears twice, or has more than one meaning, so it cannot be told what was
        approved.
        Remedy: Mend the place named in the message; docs/approvals/contract.md says where each part is written.

    statement_outdated: Approval that covers the refinement only
        It was given before approvals named the contract. What used it on the base stays good; nothing new can use it.
        Remedy: {APPROVE_ANEW}

    policy_moved: Policy that has changed since the approval
        The approval was given under other rules than those at the base.
        Remedy: {APPROVE_ANEW}

    scope_moved: Paths in scope that were not approved
        The approval covers work on named paths; a wider scope is another decision.
        Remedy: Restore the approved scope, or have the new one approved.

    base_unknown: Approval that saw a base this repository does not have
        The commit that the approver saw is not part of the base's history: another branch, or a history rewritten.
        Remedy: In a shallow clone run `git fetch --unshallow`; otherwise have the packet approved again.

    log_head_unknown: Approval that saw events this log does not have
        The approver saw another history of the packet than the one presented.
        Remedy: Restore the packet's log from the base (`workpacket log verify --base`), or have it approved again.

    log_moved: Packet that changed its lane behind the approver's back
        A move that the approver did not see may be the reason why the answer would have been no.
        Remedy: {APPROVE_ANEW}
    """)

TIME = _refused(f"""
    issued_in_future: Approval dated in the future
        An approval from tomorrow was made by a wrong clock or to outlive its time.
        Remedy: Set the clock of the approver's machine, and approve again.

    approval_expired: Approval that was not used in time
        An approval must be used before it expires; once used, it stays good.
        Remedy: {APPROVE_ANEW}

    approval_too_old: Approval older than the gate accepts
        The gate sets a maximum age, however long the approval says it is valid.
        Remedy: {APPROVE_ANEW}

    validity_too_long: Approval valid for longer than 30 days
        A yes for ten years is a blank cheque.
        Remedy: {APPROVE_ANEW}

    nonce_used: Approval that was already used
        An approval is for one event. Used twice, it would say yes to something that was not asked.
        Remedy: {APPROVE_ANEW}

    nonce_repeated: Two different statements with one nonce
        A nonce is made for one statement; two with the same are a mistake of the signing tool, or a trick.
        Remedy: {APPROVE_ANEW}
    """)

COUNT = _refused(f"""
    approval_missing: No approval at all
        The gate is human: it opens for a signature and nothing else.
        Remedy: Ask a person with one of the gate's roles to run `workpacket approve`.

    threshold_unmet: Too few persons whose approval counts
        The gate asks for several persons. Several keys or several files of one person are one voice.
        Remedy: Ask further persons with one of the gate's roles to run `workpacket approve`.

    approval_rejected: Person with a say who said no
        A no to this text holds until the same person says yes to it, revokes the no, or the text changes.
        Remedy: Read the reason, change the text, and have it approved again.

    approval_revoked: Approval that was taken back
        A revocation holds for ever, also for approvals that were used before.
        Remedy: {_APPROVE_AND_REPLACE}
    """)

ENVELOPE = _forged(f"""
    envelope_renamed: Approval file whose name is not the digest of its bytes
        The name of an approval file is the SHA-256 of its content, so that an edit cannot go unnoticed.
        Remedy: {_RESTORE_FILE}

    envelope_malformed: Approval file that is not a DSSE envelope
        Only the closed form payload, payloadType, signatures is read; whatever else is in the file was not signed.
        Remedy: {_RESTORE_FILE}

    envelope_not_canonical: Approval file in another spelling than the canonical one
        One approval is one file. Other spellings would let the same approval appear under many names.
        Remedy: {_RESTORE_FILE}

    approval_not_json: Approval in JSON that readers would not all understand alike
        Inexact numbers, deep nesting, and bytes that are not UTF-8 mean different things to different readers.
        Remedy: {_RESTORE_FILE}

    approval_duplicate_key: Approval with the same key twice
        One reader takes the first value and another the last, so two programs would see different approvals.
        Remedy: {_RESTORE_FILE}

    payload_type_wrong: Envelope with another payload type
        The type is part of what is signed; under another type the same bytes could mean something else.
        Remedy: {_RESTORE_FILE}

    signature_missing: Envelope without a signature
        An unsigned statement is a claim that anyone can write.
        Remedy: {APPROVE_ANEW}

    signature_surplus: Envelope with more than one signature
        A statement names one approver. Further persons sign statements of their own.
        Remedy: Have each approver run `workpacket approve`; one file each.

    statement_malformed: Signed statement that is not an approval
        The statement lacks a field, has one that is not known, or holds a value of the wrong form.
        Remedy: {APPROVE_ANEW}

    statement_not_canonical: Signed statement in another spelling than the canonical one
        One statement is one sequence of bytes; others are refused, so that no difference can hide in them.
        Remedy: {APPROVE_ANEW}
    """)

SIGNATURE = (
    *_forged(f"""
    sshsig_malformed: Signature that is not a well-formed SSH signature
        Lengths, numbers and the version have one permitted form; leniency here is where forgeries begin.
        Remedy: Sign again with `ssh-keygen -Y sign`, best by `workpacket approve`.

    signature_invalid: Signature that is not over these bytes
        The statement or the signature was changed after signing, or the key is not the one that signed.
        Remedy: {_RESTORE_FILE}

    key_id_wrong: Envelope that names another key than the one that signed
        The key id is only a hint, but a wrong one misleads anyone who reads the file.
        Remedy: {_RESTORE_FILE}
    """),
    *_refused("""
    namespace_wrong: Signature made for another purpose
        The namespace keeps a signature on a commit, a file or a mail from being passed off as an approval.
        Remedy: Sign with `-n workpacket-approval@v1`, best by `workpacket approve`.

    hash_forbidden: Message hashed with a weak or unknown algorithm
        Only SHA-256 and SHA-512 are accepted under a signature.
        Remedy: Sign again with a current `ssh-keygen`.

    algorithm_forbidden: Signature algorithm that is not accepted for this key
        An RSA key must sign with SHA-2; SHA-1 can be forged by a collision. Other keys have one algorithm each.
        Remedy: Sign again with a current `ssh-keygen`.

    key_malformed: Public key that is not well formed
        A key is read in its only form, so that one key cannot pass for two.
        Remedy: Copy the line from the person's `.pub` file.

    key_kind_unsupported: Kind of key that cannot approve
        Accepted are ed25519, ECDSA on NIST curves, RSA from 3072 bits, and FIDO keys. Certificates and DSA are not.
        Remedy: Make a key with `workpacket key init`.

    key_weak: Key that is too weak
        A short RSA key, or a point of small order, can be signed for by somebody else.
        Remedy: Make a key with `workpacket key init` and have it entered in `.GOV/policy/allowed_signers`.

    touch_missing: Token that signed without being touched
        Without the touch a program can have the token sign unseen. `ssh-keygen` does not check this.
        Remedy: Make the FIDO key without `-O no-touch-required`, and approve again.

    pin_missing: Token that signed without asking for PIN or fingerprint
        The gate asks that the token itself has recognised its owner.
        Remedy: Make a FIDO key with `-O verify-required`, and approve again.

    hardware_required: Key in a file at a gate that asks for a token
        A key file can be copied by whatever runs under the person's account; a token has to be touched.
        Remedy: Approve with a FIDO key (`ssh-keygen -t ed25519-sk`).

    fido_application_wrong: Token key that belongs to another application
        The key was made for a web site or another program, which could obtain signatures for its own ends.
        Remedy: Make the FIDO key with `ssh-keygen`, whose keys belong to 'ssh:'.
    """),
)

SIGNER = _refused(f"""
    signer_unknown: Key that no line of allowed_signers holds
        Only keys that the base revision names can approve; an agent's own key is not among them.
        Remedy: Have the key entered in `.GOV/policy/allowed_signers` by an approved change of the policy.

    key_not_for_approvals: Key that may sign, but not approvals
        The line of the key lists the namespaces it is trusted for, and ours is not among them.
        Remedy: Add `workpacket-approval@v1` to namespaces="..." of the line, by an approved change of the policy.

    approver_mismatch: Statement in another person's name
        The approver that the statement names must be the principal of the key that signed it.
        Remedy: Let the named person sign, or sign in your own name.

    key_revoked: Revoked key
        Nothing that a revoked key has signed is believed, whenever it was signed.
        Remedy: {_APPROVE_AND_REPLACE}

    key_out_of_time: Key outside its period of validity
        The line of the key in allowed_signers says from when and until when it may sign.
        Remedy: Approve with a valid key, or have valid-before extended by an approved change of the policy.

    event_key_at_gate: Approval signed by an event key
        An event key has no passphrase, so any program of its account can sign with it. It says who typed, and never
        opens a gate.
        Remedy: Approve with a key of your own that [actors] does not list; `workpacket key init` makes one.

    role_not_accepted: Role that this gate does not ask for
        Each gate names the roles whose yes counts.
        Remedy: Let a person with one of the gate's roles approve; `workpacket policy show` lists them.

    role_not_held: Role that the approver does not hold
        A statement may claim any role; the policy of the base says who holds it.
        Remedy: Let a person who holds the role approve; `workpacket policy show` lists them.

    own_work: Approval of one's own work
        The gate asks for a second pair of eyes: the author may not approve, the coder may not validate.
        Remedy: Let another person approve.

    party_unknown: No record of whom the approver must differ from
        Without knowing the author or coder, it cannot be shown that the approver is somebody else.
        Remedy: Record the party in the packet's documents, then judge again.
    """)

POLICY = (
    *_refused(f"""
    policy_unanchored: Base revision without a policy
        Who may approve is read from the base revision only. Until a policy is there, no gate can be passed.
        Remedy: Commit `.GOV/policy/` (`workpacket init` writes it) on the main branch: the first such commit is the
        anchor.

    policy_malformed: Policy that cannot be read
        A rule that is not understood would not be applied, so no gate is passed under a policy with a fault.
        Remedy: {_REPAIR_POLICY}

    approvers_unnamed: Policy that does not say who may approve
        Who has a say at which gate is written down in the table [approvals], and no one has one without it.
        Remedy: `workpacket policy trust` adds the table and your key; commit both to the main branch.

    signers_malformed: Line of allowed_signers outside the accepted form
        One literal person, namespaces, optional dates in UTC, one key. A list read by half is not the list approved.
        Remedy: {_REPAIR_POLICY}

    principal_pattern: Pattern instead of a person in allowed_signers
        With a pattern, one key speaks for many persons, and a threshold counts nothing.
        Remedy: Write one line for each person, with the name in full.

    principal_ambiguous: Person spelled in two ways in allowed_signers
        Two spellings would count as two persons at a threshold.
        Remedy: Use one spelling on all lines of the person, and in the roles of the policy.

    key_shared: Key on two lines of allowed_signers
        A key that two persons share proves neither of them.
        Remedy: Leave the key with one person; make another with `workpacket key init`.

    revoked_keys_malformed: Line of revoked_keys that is not a public key
        A revocation that cannot be read would not be applied.
        Remedy: List public keys, one a line as in a `.pub` file; binary lists are not read.

    gate_without_policy: Gate that the policy does not know
        A human gate without a rule for it stays shut.
        Remedy: Add `[approvals.gates.<gate>]` to `.GOV/policy/policy.toml` by an approved change of the policy.
    """),
    *_forged("""
    reanchor_unfit: Record of a new root of trust that does not fit its policy
        A new root of trust replaces the policy of the base by one exact other policy, once. Its record only grows.
        Remedy: Restore `.GOV/policy/reanchored.toml` from the base, then run `workpacket policy re-anchor`.

    reanchor_unnamed: New root of trust that the CI configuration on the base does not name
        No key approves a new root of trust, so it counts only if the base itself names the digest of the new policy.
        Remedy: Have somebody who may write to the base put the line that the message shows into its CI configuration.
        """),
    *_forged("""
    policy_rolled_back: Base with another policy than the one last seen here
        The base lacks the commit at which this machine last saw the policy, and holds a different policy: an older one
        may have been brought back together with a key that was removed.
        Remedy: Fetch the base again. If its history was rewritten on purpose, compare policies and remove the trust
        file.

    trust_file_foreign: Trust file of another repository
        The memory of the policy last seen belongs to a repository with another root commit.
        Remedy: Give each repository a trust file of its own.

    trust_file_malformed: Trust file that cannot be read
        Without it a policy that was rolled back would not be noticed.
        Remedy: Restore the file, or remove it after comparing the base's policy with one you trust.
    """),
)

LEGACY = _refused(f"""
    legacy_refused: Name and date in place of a signature
        Anyone can type it, it binds no text, and it can be used again.
        Remedy: {_APPROVE}

    legacy_malformed: Token that is not a name and a date
        The old form is a lower-case name followed by DDMMYYYYHHMM.
        Remedy: {_APPROVE}

    legacy_date_unreal: Token with a date that does not exist
        A date that no calendar has was not typed by somebody looking at one.
        Remedy: {_APPROVE}

    legacy_date_off: Token recorded at another time than it names
        Date and record disagree by more than time zones explain.
        Remedy: {_APPROVE}

    legacy_reused: Token used more than once
        One token stands for one decision over the whole history.
        Remedy: {_APPROVE}

    legacy_unpresented: Token for a text that was never presented
        It is not on record when the text was shown, so nothing shows that anyone has read it.
        Remedy: Present the refinement (`workpacket refine --present`), then have it approved.

    legacy_hasty: Token that came too soon after the text
        There was no time to read between presenting the text and recording the token.
        Remedy: {_APPROVE}
    """)

ASKING = (
    *_refused("""
    contract_unchanged: Amendment that changes nothing
        Stub and packet say the contract that is in force already.
        Remedy: Write the new contract into stub and packet first; `workpacket contract WP` shows the one in force.
    """),
    *_forged("""
    attest_unfit: Event that rests on an envelope of something else
        An event names the envelopes that opened its gate. One of another packet or gate opened nothing.
        Remedy: Take the event back, and move the packet by its command, which names the right ones.

    reapproval_unfit: New approvals for an event that they cannot be for
        `reapproved` names approvals for an earlier event of the base whose own were taken back. Here there is none.
        Remedy: Take the event back; `workpacket reapprove WP_ID` writes one where it helps.
    """),
    *reasons(
        "approval",
        """
    revocation_lands: A revocation of an approval that was used
        From when the base holds it, what rests on the approval counts no more, and every check says so.
        Remedy: Have it approved again after the revocation has landed, then `workpacket reapprove WP_ID`.
    """,
        severity="info",
        strict_severity="info",
    ),
    *_refused("""
    approval_needs_terminal: Approval without a terminal to read at
        The text is shown in full to a person at a terminal; without one, a program would be saying yes.
        Remedy: Run the command in a terminal, or write the statement with `--statement-out FILE` and sign it elsewhere.

    approval_not_given: The words of approval were not typed
        Only the exact words count, so that pressing a key by mistake approves nothing.
        Remedy: Run the command again and type the words that it shows.

    nothing_to_approve: Nothing that this gate is about
        A gate is about the bytes of a file: the refinement, the packet, or a changed policy. It is not there.
        Remedy: Write it first: `workpacket list` shows which packets there are.

    refinement_unfillable: Refinement without the fields for the person's word
        What is signed must itself say that it was approved, in USER_REVIEW_STATUS and USER_SIGNATURE of METADATA.
        Remedy: Add the fields, as `workpacket check` says; then approve.
    """),
    *_conflict("""
    statement_unfit: Statement about another text than the one that is here
        It was made for other bytes, or for another packet; attached, it would not count.
        Remedy: Make a new one with `workpacket approve WP --statement-out FILE`, and sign that.

    signature_minute_taken: More approvals at once than there are tokens
        The token in the file holds name and minute, and each packet gets the next free one, up to an hour ahead.
        Remedy: Run the command again in a minute.

    key_exists: A key is there already
        Overwriting it would take away a key that allowed_signers may name.
        Remedy: Name another file: `workpacket key init PATH`.
    """),
    *_usage("""
    approval_unknown: No envelope with this digest
        Only an approval that is there can be revoked.
        Remedy: Look up the digest with `workpacket approvals list`.

    revision_ambiguous: Name of the base that means several commits
        A tag and a branch have this name. git would take the tag, which others may push than those who may merge.
        Remedy: Name the base in full: `--base refs/remotes/origin/main`; delete the tag or branch that is not needed.
    """),
    *_environment("""
    approval_key_missing: No key to approve with
        The public half of the key is read to find out whose it is.
        Remedy: Make one with `workpacket key init`, or name yours with `--key`.

    key_without_passphrase: Key without a passphrase
        Whatever runs under the person's account could approve with it.
        Remedy: Run `workpacket key init` again and give a passphrase.

    history_shallow: Clone without its full history
        First commit, base and time of use of an approval are looked up in the history, and here it is cut off.
        Remedy: Run `git fetch --unshallow`; in CI check out with the full history (`fetch-depth: 0`).

    object_missing: Clone that lacks an object of its history
        What a commit holds there is not in this clone, as after a clone with `--filter` or damage to the disk.
        Remedy: Fetch all: `git config --unset remote.origin.partialclonefilter && git fetch --refetch`, or clone again
        without a filter; `git fsck` shows damage.
    """),
    *_finding("""
    contract_changed: Stub, packet and log that do not say the same contract
        From the activation on, the contract that was approved is fixed. Status, evidence and notes stay free.
        Remedy: Restore what was approved (`workpacket contract WP` shows it), or write the new contract into stub and
        packet and have it approved: `workpacket approve WP --gate amendment`, then `workpacket amend WP`.

    agent_could_approve: A program of this account could approve
        A key that may approve signed for us without asking anyone, and would sign for an agent as well.
        Remedy: Follow the steps that `workpacket key doctor` lists, from the least effort to the most protection.
    """),
)

SIGNING = _environment("""
    ssh_keygen_missing: The program ssh-keygen is not installed
        Signing is done by OpenSSH, so that this package never touches a private key. Verifying works without it.
        Remedy: Install OpenSSH 8.2 or later (Debian, Ubuntu: `apt install openssh-client`; macOS and Windows 10 bring
        it).

    ssh_keygen_doubtful: The ssh-keygen in PATH may not be that of OpenSSH
        It is in the work tree, or where others can write. The program gets the passphrase, and can sign what it likes.
        Remedy: Put the folder of OpenSSH, such as `/usr/bin`, before others in PATH.

    event_key_missing: No event key here may act under this name
        The policy of the base names the actors, and each event has to be signed by a key that it lists for its actor.
        Remedy: `workpacket key init --event` or `key init --agent NAME` makes a key; an approved change of the policy
        adds its fingerprint to [actors.NAME].

    event_key_unfit: Event key that cannot be used
        It is missing, or others than its owner can read it.
        Remedy: `chmod 600 FILE`; or name another one in WORKPACKET_EVENT_KEY.

    event_key_in_repository: Event key in the work tree
        What is in the work tree is read by everybody who works there, and is committed sooner or later.
        Remedy: Keep the key elsewhere; `workpacket key init --event` puts it among your settings.

    signing_failed: The program ssh-keygen did not sign
        The passphrase was wrong, the token was not touched, or the agent does not hold the key.
        Remedy: Read what `ssh-keygen` said, then run the command again.

    signing_key_unfit: The key signs, but its signatures cannot approve
        A signature that a gate would refuse is not worth writing down.
        Remedy: Choose another key, or make one with `workpacket key init`.
    """)

# What judging a file of approval can say; the rest is said while one is made.
# What no gate asks, but a check of the whole repository.
ROOT = (
    *_forged("""
    reanchor_named: Change that names a new root of trust in the CI configuration
        A digest named there replaces the root of trust. A change that is judged cannot do that.
        Remedy: Take the line out of the change. Somebody who may write to the base commits it there.
        """),
    *reasons(
        "approval",
        """
    policy_reanchored: Policy whose root of trust was replaced
        The keys of the policy before were lost, so this policy has no approval; the CI configuration on the base named
        it. Approvals from before are judged by the policy of their time.
        Remedy: None is needed. Compare the people that the policy names with those you expect.
        """,
        exit_code=exits.FINDINGS,
        severity="info",
        strict_severity="info",
    ),
)

JUDGING = (*FIT, *TIME, *COUNT, *ENVELOPE, *SIGNATURE, *SIGNER, *POLICY, *LEGACY)

REASONS = (*JUDGING, *ROOT, *ASKING, *SIGNING)
