"""The list of commands. Data only: every command reads it at start-up, so it imports almost nothing."""

from __future__ import annotations

from workpacket.model.wording import FORMER, TYPED

# What is typed, the module below workpacket.cli (with a COMMAND, or several in DECLARED), and one line of help. Order
# and groups are those of `workpacket --help`, which lists the first words; a row with two words belongs to the command
# or family (a row without a module) of its first word.
GROUPS: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Begin",
        (
            ("init", "init", "set up governance for a repository"),
            ("adopt", "backlog", "create logs for packets that have none, from their documents"),
            ("prime", "prime", "print what an agent needs to know before it works here"),
            ("status", "views", "show the whole repository on one screen"),
            ("next", "views", "list the work that is ready, most urgent first"),
            ("list", "views", "list packets and stubs"),
            ("search", "views", "find packets by words in their ids, titles, documents and events"),
            ("show", "views", "show a packet's task, how much of it is proved, and what is missing"),
            ("why", "show", "show every condition that keeps a packet from its next lane"),
        ),
    ),
    (
        "Work",
        (
            ("new", "backlog", "add a stub to the backlog"),
            ("refine", "backlog", "write the technical refinement of a stub, or show it to the user"),
            ("approve", "approve", "approve or reject a packet at a gate, with a signature"),
            ("start", "claim", "activate and claim a packet, on a separate branch"),
            ("done", "review", "prove the work on a packet, and submit it"),
            ("claim", "claim", "claim a packet that is ready, until the lease expires"),
            ("submit", "review", "prove what the packet requires, and submit the work for review"),
            ("verdict", "review", "judge work that is in review"),
            ("guard", "guard", "say whether a path may be written now; also works as a hook for coding agents"),
            ("mcp", "mcp", "serve the commands that an agent needs, over the Model Context Protocol"),
            ("packet", "", "everything else that can be done with a packet, such as handing it over or abandoning it"),
            ("packet activate", "lifecycle", "turn a stub into a task packet, if it passes the activation gate"),
            ("packet contract", "contract", "show the contract of a packet, or its canonical form"),
            ("packet amend", "contract", "replace the approved contract of a packet"),
            (
                "packet prepare",
                "claim",
                "create a packet's branch and, optionally, its work tree, and set its assignee",
            ),
            (
                "packet implement",
                "implement",
                "create a branch and work tree for a spec-kitty work package, and claim it",
            ),
            ("packet release", "lifecycle", "release a packet so that someone else can claim it"),
            ("packet handover", "lifecycle", "hand a packet over to another actor"),
            ("packet block", "lifecycle", "mark work as blocked because it cannot continue"),
            ("packet unblock", "lifecycle", "resume blocked work in its previous lane"),
            ("packet merged", "lifecycle", "find the work on the target branch, and record the merge"),
            ("packet reopen", "lifecycle", "resume work that was accepted but not merged"),
            ("packet advance", "lifecycle", "move a packet out of a lane that the policy adds"),
            ("packet note", "lifecycle", "add a note to the log of a packet, such as a correction"),
            ("packet abandon", "lifecycle", "abandon a packet"),
            ("packet supersede", "lifecycle", "replace a packet with a later revision"),
            ("packet rename", "lifecycle", "give a packet a different id before it is merged"),
            ("packet resolve", "lifecycle", "settle a packet that was moved independently on two branches"),
            ("packet waive", "lifecycle", "waive a gate condition, with a reason and an end date"),
            ("packet override", "lifecycle", "override a gate condition, with a reason and an end date"),
            ("packet reapprove", "lifecycle", "replace approvals that no longer count"),
        ),
    ),
    (
        "Check and audit",
        (
            ("check", "check", "find everything that is wrong in the governance documents"),
            ("fmt", "fmt", "rewrite documents in their canonical form"),
            ("audit", "trace", "verify the whole repository, and report what is wrong, since when, and who must act"),
            ("audit deps", "audits", "find dependencies that changed without permission"),
            ("audit justfile", "audits", "find parameters that a justfile inserts into a command line unquoted"),
            (
                "trace",
                "trace",
                "follow packets from requirement to evidence and commit, and find what is no longer valid",
            ),
            ("trace impact", "trace", "list the packets that depend on a file, one of its lines, or an anchor"),
            ("trace trailers", "trace", "print the trailers of a packet for a commit or a pull request"),
            ("log", "log", "verify the log, or sign a log checkpoint"),
            ("log show", "show", "show what happened to a packet"),
            ("log recover", "log", "restore events that git removed, or finish an interrupted command"),
            ("log import", "foreign_forms", "import checkpoints in a foreign format into the log"),
            ("log export", "foreign_forms", "export checkpoints from the log in a foreign format"),
            ("approvals", "approvals", "list and verify approvals"),
            ("approvals revoke", "approvals", "revoke an approval or a rejection"),
            ("evidence", "evidence", "write the proof output of a packet for a pull request"),
            ("report", "pull_request", "report how a pull request affects the packets, or list all requirements"),
            ("policy", "policy", "show or test the policy, add an approver, or replace the root of trust"),
            ("key", "policy", "create, test and list approval keys"),
        ),
    ),
    (
        "Board and registry",
        (
            ("board", "views", "show the board, regenerate it, move an entry, or export a page"),
            ("board serve", "serve", "serve the board to a browser on this machine, always up to date"),
            (
                "board registry",
                "registers",
                "show or audit which packet is current for each base, or regenerate the registry",
            ),
            (
                "board merge-driver",
                "registers",
                "merge two versions of a board, registry or packet for git, using the logs of both sides",
            ),
        ),
    ),
    (
        "Runs",
        (
            ("resume", "resume", "list and resume unfinished work, or show what stops it"),
            ("runtime", "", "do work in steps that survive a crash, and manage the stored runs"),
            ("runtime run", "run_command", "do work in steps that survive a crash"),
            ("runtime runs", "runs", "show, export, import, prune and verify runs"),
            ("runtime questions", "questions", "list everything that is waiting for a person, in all runs"),
            ("runtime cancel", "runs", "ask a run to stop at its next step boundary"),
            ("runtime signal", "runs", "send a signal to a run that is waiting for one"),
            (
                "runtime session",
                "questions",
                "show sessions with a model, decide on stopped ones, and continue imported ones",
            ),
            ("runtime queue", "run_command", "offer runs to workers, and show the queue"),
            ("runtime worker", "run_command", "execute the runs offered in a queue"),
            ("runtime store", "doctor", "create or upgrade the run tables on a server, and grant roles access to them"),
            ("runtime doctor", "doctor", "check the run store and its location"),
            ("runtime batch", "progress", "take tasks through tests, implementation and review in batches"),
            ("runtime progress", "progress", "record or list the progress that roles make on features"),
        ),
    ),
    (
        "Help",
        (
            ("explain", "explain", "explain a reason code"),
            ("help", "", "show the options of a command, a schema, or the completion script for a shell"),
            ("help schema", "explain", "print the JSON Schema of a document kind or of a command's JSON answer"),
            ("help completion", "completion", "print the completion script for a shell"),
        ),
    ),
)
_ROWS = tuple(row for _, rows in GROUPS for row in rows)
MODULES = {typed: module for typed, module, _ in _ROWS}
SUMMARIES = {typed: summary for typed, _, summary in _ROWS}
_NAMES = {new: name for name, new in reversed(TYPED.items())}  # the first of several old spellings
# The names of everything that can be run.
COMMANDS = tuple(_NAMES.get(typed, typed) for typed, module in MODULES.items() if module)


def resolve(words: list[str] | tuple[str, ...]) -> tuple[str, int]:
    """Return the name of the command that `words` begins with, and how many words it has; ("", 0) if there is none."""
    for count in range(min(len(words), 2), 0, -1):
        spelled = " ".join(words[:count])
        if MODULES.get(spelled):
            return _NAMES.get(spelled, spelled), count
        if spelled in FORMER:
            return spelled.split()[0], count
    return "", 0


def below(word: str) -> tuple[tuple[str, str], ...]:
    """Return the second words that a command or family accepts, with their summaries."""
    return tuple((typed.partition(" ")[2], summary) for typed, _, summary in _ROWS if typed.startswith(f"{word} "))
