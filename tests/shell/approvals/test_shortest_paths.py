"""From an empty folder to VALIDATED with a signed contract and the verdict of somebody else: how much is typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from guided_tour.terminal import at_terminal
from shell.approvals.test_tutorial import environment_of

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen signs")

NAME, PHRASE = "WP-1-Greet-The-User-v1", "correct horse"
PROVE = "python3 -m unittest discover -s tests"
SIGNED = [("type: ", f"APPROVE REFINEMENT {NAME}"), ("Enter passphrase", PHRASE)]
JUDGED = [("type: ", f"APPROVE VERDICT {NAME}"), ("Enter passphrase", PHRASE)]
NEW_KEY = [("Enter passphrase", PHRASE), ("same passphrase again", PHRASE)]
PROGRAM = "def greet(name):\n    return f'Hello, {name}'\n"
TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom greet import greet\n\n\n"
    "class TestGreet(unittest.TestCase):\n    def test_name(self):\n"
    "        self.assertEqual(greet('Ann'), 'Hello, Ann')\n"
)
MOST_LIGHT, MOST_FULL = 11, 18


class Typist:
    count = 0

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repository"
        self.root.mkdir()
        settings = folder / "gitconfig"
        settings.write_text("[user]\n\tname = ann\n\temail = ann@example.org\n")
        self.environment = environment_of(folder) | {"GIT_CONFIG_GLOBAL": str(settings)}

    def __call__(self, line: str, *answers: tuple[str, str]) -> str:
        self.count += 1
        status, screen = at_terminal(["sh", "-c", line], self.root, list(answers), self.environment)
        assert status == 0, f"{line}\n{screen}"
        return screen

    def begin(self, form: str) -> None:
        self("git init --quiet --initial-branch=main")
        self(f"workpacket init --form {form} --commit")
        self("workpacket key init", *NEW_KEY)
        self("workpacket policy trust --commit")

    def work(self) -> None:
        """What an editor writes, and the commit."""
        for path, text in (("src/greet.py", PROGRAM), ("tests/test_greet.py", TEST)):
            (self.root / path).parent.mkdir(exist_ok=True)
            (self.root / path).write_text(text)
        self("git add --all && git commit --quiet --message 'Greet the user'")

    def land(self) -> None:
        self("git switch --quiet main")
        self(f"git merge --quiet --no-ff --message Land wp/{NAME}")
        count = self.count
        shown = json.loads(self(f"workpacket show {NAME} --json"))
        assert shown["data"]["lane"] == "VALIDATED"
        self("workpacket check && workpacket check --base HEAD^1")
        assert self("git status --porcelain") == ""
        self.count = count

    def edit(self, path: str, *changes: tuple[str, str]) -> None:
        text = (self.root / path).read_text("utf-8")
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (self.root / path).write_text(text, "utf-8")


@pytest.mark.long
def test_the_light_form_takes_eleven_commands_and_no_edit(tmp_path: Path) -> None:
    typed = Typist(tmp_path)
    typed.begin("light")
    typed(
        f"workpacket new 'Greet the user' --criterion 'It greets by name.' --prove '{PROVE}' --scope src/ "
        "--scope tests/ --requirement 'The program greets its user by name.' --refinement 'The name is an argument.'"
    )
    shown = typed(f"workpacket start {NAME} --sign --as coder", *SIGNED)
    assert "The program greets its user by name." in shown.partition("what the specification requires")[2]
    typed.work()
    typed(f"workpacket done {NAME} --as coder --commit")
    typed(f"workpacket verdict {NAME} PASS --reason 'It greets.' --sign --commit", *JUDGED)
    typed.land()
    assert typed.count <= MOST_LIGHT


@pytest.mark.long
def test_the_full_form_takes_eighteen_commands_and_edits_of_what_a_person_thinks_of(tmp_path: Path) -> None:
    typed = Typist(tmp_path)
    typed.begin("full")
    typed.edit(".GOV/spec/SPEC_v1.md", ("## 2", "### 1.1 Greeting\nIt greets by name.\n\n## 2"))
    typed("git commit --quiet --all --message 'What is required'")
    typed(
        f"workpacket new 'Greet the user' --why 'People like it.' --roadmap none --risk LOW --scope src/ "
        f"--scope tests/ --criterion 'It greets by name.' --prove '{PROVE}'"
    )
    typed(f"workpacket refine {NAME} --anchor 1.1")
    typed.edit(
        f".GOV/refinements/{NAME}.md",
        ("<fill in: what the specification leaves open, or NONE>", "NONE"),
        ("<fill in: events, or NONE>", "NONE"),
        ("<fill in: how it can be attacked, or NONE>", "NONE"),
        ("<fill in: the types it needs, or NONE>", "NONE"),
        ("[ ] PASS", "[x] PASS"),
        ("_VERDICT: <fill in>", "_VERDICT: PASS"),
        ("_FOUND: <fill in>", "_FOUND: NO"),
        ("_NEEDED: <fill in>", "_NEEDED: NO"),
        ("<fill in>", "It is one sentence."),
    )
    typed(f"workpacket refine {NAME} --present")
    typed(f"workpacket start {NAME} --sign --as coder", *SIGNED)
    typed.edit(f".GOV/task_packets/{NAME}.md", ("SEARCH_TERMS: TODO", "SEARCH_TERMS: greet"))
    typed.work()
    typed(f"workpacket done {NAME} --as coder --commit")
    (typed.root / "report.md").write_text("It greets.\n")
    typed("git add report.md && git commit --quiet --message 'The report'")
    typed(f"workpacket verdict {NAME} PASS --report report.md --sign --commit", *JUDGED)
    typed.land()
    assert typed.count <= MOST_FULL
