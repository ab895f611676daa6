"""Why a packet may not move yet: its log, its stub, its refinement and the user's word on it."""

from __future__ import annotations

from workpacket.model import exits
from workpacket.model.reasons import Reason


def _gate(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "gate", exit_code=exits.REFUSED)


def _usage(code: str, title: str, explanation: str, remedy: str) -> Reason:
    return Reason(code, title, explanation, remedy, "usage", exit_code=exits.USAGE)


_SIGN = "Have a person read the refinement and sign it: `workpacket approve WP`; it fills in the fields USER_*."

REASONS: tuple[Reason, ...] = (
    _usage(
        "packet_unknown",
        "There is no packet of this id",
        "Nothing is guessed: the nearest id may be another piece of work.",
        "Use the id that the message names, or look for it with `workpacket list`.",
    ),
    _usage(
        "packet_ambiguous",
        "A base id was given where several revisions are possible",
        "Which of them is meant cannot be told from the base.",
        "Name the revision.",
    ),
    _usage(
        "actor_unknown",
        "Nobody said who acts",
        "Each event names who did it, though only a signature makes that more than a claim.",
        "Give `--as NAME`, or set WORKPACKET_ACTOR or git's user.name.",
    ),
    _usage(
        "proof_not_run",
        "The command that is to prove a criterion could not be run",
        "It proves nothing, neither for nor against.",
        "Correct the command; it is run from the top of the repository, without a shell.",
    ),
    _usage(
        "proof_needs_shell",
        "The command that is to prove a criterion is written for a shell",
        "A proof is run without a shell, so a pipe, a variable or a pattern would reach the program as plain text: of "
        "`echo Eve | python3 greet.py`, `echo` would print all of it, and greet.py would never start.",
        "Name the shell: `--prove \"1=sh -c 'COMMAND'\"`. Or quote the character, if it is meant as it is.",
    ),
    _usage(
        "secret_in_proof",
        "What is given as proof holds a secret",
        "The command, and the reason why a line does not apply, enter the log, and stay there for everybody.",
        "Let the program read the secret from a file, or from a variable that `[evidence] env` of the policy names. "
        "A secret that was typed here should be replaced.",
    ),
    _gate(
        "proof_tree_differs",
        "The work tree is not the commit that is to be proved",
        "What a command comes to in another tree says nothing about the commit.",
        "Check the commit out completely, here or in a new work tree: `git worktree add --detach PATH REV`.",
    ),
    _gate(
        "proof_changed_tree",
        "A proof changed the work tree",
        "It changed tracked files, left new ones or moved HEAD: what it proved is not the commit any more, and neither "
        "is what later proofs see.",
        "Take the change back. Let the proof write to a temporary folder, or to files that git ignores.",
    ),
    _gate(
        "log_absent",
        "The packet has no log",
        "Its lane is what the log says. Board and packet are drawn from the log and prove nothing.",
        "`workpacket adopt` begins a log for what the documents say.",
    ),
    _gate(
        "log_unsound",
        "The log of the packet does not hold together",
        "What it says cannot be trusted, so nothing is built upon it.",
        "`workpacket log verify` shows what is wrong; restore the file from git.",
    ),
    _gate(
        "packet_is_forked",
        "The packet was moved independently on two branches",
        "The moves contradict one another, and no command can know which of them holds.",
        "`workpacket history WP` shows both; `workpacket resolve WP --lane LANE --reason TEXT` settles it.",
    ),
    _gate(
        "not_forked",
        "There is nothing to settle",
        "The moves of the packet do not contradict one another.",
        "`workpacket why WP` says what comes next.",
    ),
    _gate(
        "fork_lane_unknown",
        "None of the contradicting moves leads to this lane",
        "Settling a fork means to say which of its moves holds, not to make another one.",
        "Name one of the lanes that the message lists.",
    ),
    _gate(
        "wrong_lane",
        "The packet is in a lane that the command does not lead out of",
        "Each move begins in certain lanes, so that no gate can be walked around.",
        "Use one of the commands that the message lists.",
    ),
    _gate(
        "packet_is_stub",
        "The packet is a stub",
        "A stub is a note in the backlog: nobody has refined or approved it, so nobody may start work from it.",
        "`workpacket activate WP` says what is missing.",
    ),
    _gate(
        "packet_superseded",
        "The packet is superseded",
        "A later revision has taken its place; work on this one would be lost.",
        "Work on the revision that the message names.",
    ),
    _gate(
        "packet_exists",
        "There is such a packet already",
        "Two files for one packet would say two things.",
        "Choose another id, or the next revision: `workpacket new --next BASE`.",
    ),
    _gate(
        "packet_missing",
        "The file of the packet is missing",
        "The log has it as activated, and nobody can read what is to be done.",
        "Restore it from git.",
    ),
    _gate(
        "stub_missing",
        "The stub is missing",
        "Scope and acceptance of the packet are taken from it.",
        "Restore it from git, or write it anew.",
    ),
    _gate(
        "successor_unfit",
        "This packet cannot take the place of the other",
        "A packet is superseded by another one that is known and has a log.",
        "Name a later revision, or make one: `workpacket new --next BASE`.",
    ),
    _gate(
        "spec_pointer_missing",
        "Nothing says which specification is in force",
        "A refinement is made against one version of one specification.",
        "Write its path into .GOV/roles_shared/SPEC_CURRENT.md.",
    ),
    _gate(
        "specification_unreadable",
        "The specification cannot be read",
        "Whether it states the requirement cannot be seen.",
        "Correct the path, or bring the file back.",
    ),
    _gate(
        "requirement_only_in_roadmap",
        "The requirement stands in a roadmap section only",
        "A roadmap says what somebody wants one day; what binds is the main body of the specification.",
        "Anchor it in the main body; if it does not stand there, enrich the specification first.",
    ),
    _gate(
        "enrichment_needed",
        "The specification has to be enriched first",
        "The refinement found that the specification does not cover the work.",
        "Add the proposed text to the specification, then refine against the new version.",
    ),
    _gate(
        "refinement_missing",
        "There is no technical refinement",
        "Without it nobody has looked whether the specification covers the work.",
        "`workpacket refine WP` writes the scaffold.",
    ),
    _gate(
        "refinement_incomplete",
        "The technical refinement is not complete",
        "What is left open there is decided by whoever writes the code.",
        "Fill in the point that the message names.",
    ),
    _gate(
        "refinement_not_presented",
        "The refinement was not shown to the user as it is now",
        "Nobody can approve what they have not seen.",
        "`workpacket refine WP --present` prints it for the conversation and records its digest.",
    ),
    _gate("user_signature_missing", "The user has not signed", "Work begins with a person's word.", _SIGN),
    _gate("refinement_not_approved", "The refinement is not approved", "The user's answer is still open.", _SIGN),
    _gate(
        "checklist_item_unmet",
        "An item that the policy adds to the checklist is not met",
        "The repository decided that no packet is activated without it.",
        "Add the section with its text to the refinement.",
    ),
    _gate(
        "scope_not_carried_over",
        "The packet lacks something that its stub demands",
        "What is dropped between stub and packet is never built and never missed.",
        "Carry it over, or change the stub and say why.",
    ),
    _gate(
        "board_entry_not_moved",
        "The board still has the packet among the stubs",
        "It looks like something that nobody may start.",
        "`workpacket board sync` moves it.",
    ),
    Reason(
        "clock_behind",
        "The clock is behind what the log has seen",
        "Leases and approvals are judged by the clock; one that goes backwards would make ended ones valid.",
        "Set the clock of this machine.",
        "environment",
        exit_code=exits.ENVIRONMENT,
    ),
    Reason(
        "lane_unknown",
        "The log names a lane that this version does not know",
        "It was written by another version, or by hand.",
        "Update workpacket.",
        "environment",
        exit_code=exits.ENVIRONMENT,
    ),
)
