"""The light form as a newcomer types it: one document for each packet, and nothing that an editor has to open."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest

from docs.test_words import glossary
from lifecycle.governed import Governed, remembered
from workpacket.documents.packet import is_light
from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.forms import id_for, slug_of
from workpacket.lifecycle.policy import packets_policy
from workpacket.text.source import Source

pytestmark = pytest.mark.share(4)

NAME = "WP-1-Greet-The-User-v1"
DOCUMENT = f".GOV/task_packets/{NAME}.md"
PROVE = "python3 -m unittest discover -s tests"
NEW = (
    "new", "Greet the user",
    "--criterion", "The program greets its user by name.",
    "--prove", PROVE,
    "--scope", "src/", "--scope", "tests/",
    "--requirement", "The program greets its user by name.",
    "--refinement", "The name is an argument; without one, the greeting is for the world.",
)  # fmt: skip
PROGRAM = "def greet(name):\n    return f'Hello, {name}'\n"
TEST = (
    "import sys\nimport unittest\n\nsys.path.insert(0, 'src')\nfrom greet import greet\n\n\n"
    "class TestGreet(unittest.TestCase):\n    def test_name(self):\n"
    "        self.assertEqual(greet('Ann'), 'Hello, Ann')\n"
)
# `--requirement` adds the specification, which is then in the scope of the packet.
SCOPE = ("src/", "tests/", ".GOV/spec/")
MOST_COMMANDS, MOST_FURTHER, MOST_LINES, MOST_WORDS = 7, 4, 25, 8


class Typed:
    """Counts what is typed."""

    def __init__(self, governed: Governed) -> None:
        self.governed = governed
        self.lines: list[str] = []

    def workpacket(self, *words: str) -> str:
        self.lines.append(" ".join(("workpacket", *words)))
        return self.governed.done(*words).out

    def git(self, *words: str) -> None:
        self.lines.append(" ".join(("git", *words)))
        subprocess.run(["git", *words], cwd=self.governed.root, check=True, capture_output=True)


def governance_lines(root: Path, before: str, after: str, *scope: str) -> int:
    """The added lines of a landing outside the scope, JSON at 200 bytes a line."""
    rows = subprocess.run(
        ["git", "diff", "--numstat", "--no-renames", before, after],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    lines = size = 0
    for row in rows:
        added, _, path = row.split("\t")
        if path.endswith(".json"):
            size += (root / path).stat().st_size
        elif not path.startswith(scope):
            lines += int(added)
    return lines + math.ceil(size / 200)


def write_program(governed: Governed) -> None:
    governed.write("src/greet.py", PROGRAM)
    governed.write("tests/test_greet.py", TEST)


def test_a_newcomer_types_seven_commands_and_edits_no_document(governed: Governed) -> None:
    typed = Typed(governed)
    typed.git("init", "--quiet")
    said = typed.workpacket("init", "--commit").splitlines()[-1]
    before = governed.git("rev-parse", "HEAD").strip()
    said += typed.workpacket(*NEW)
    said += typed.workpacket("start", NAME)
    write_program(governed)
    governed.git("add", "--all")  # new files; `git commit` is what is counted
    typed.git("commit", "--quiet", "--message", "Greet the user")
    said += typed.workpacket("done", NAME, "--commit")
    typed.git("merge", "--quiet", f"wp/{NAME}")
    assert len(typed.lines) <= MOST_COMMANDS, typed.lines
    # Each further packet takes what followed `init`: four commands, and one commit beside that of the work.
    assert len(typed.lines[2:]) - 1 <= MOST_FURTHER
    assert int(governed.git("rev-list", "--count", f"{before}..HEAD")) - 1 == 1
    said += governed.done("show", NAME).out
    assert "MERGED" in said
    assert governance_lines(governed.root, before, "HEAD", *SCOPE) <= MOST_LINES
    assert governed.git("status", "--porcelain") == ""
    assert governed.git("branch", "--show-current").strip() == "main"
    assert len(words_to_learn(said)) <= MOST_WORDS, words_to_learn(said)


def words_to_learn(said: str) -> set[str]:
    """The entries of the glossary in the output of commands, without names of files and options."""
    plain = re.sub(r"`[^`]*`|--[a-z]+|\S*[/=.]\S*", " ", said)
    return {word for word in glossary() if re.search(rf"\b{word}s?\b", plain, re.IGNORECASE)}


def begun(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.done(*NEW)


@remembered
def handed_in(governed: Governed) -> None:
    begun(governed)
    governed.done("start", NAME)
    write_program(governed)
    governed.commit("Greet the user")
    governed.done("done", NAME, "--commit")


@pytest.mark.share(6)
def test_submitted_work_that_needs_no_verdict_waits_for_its_merge_only(governed: Governed) -> None:
    handed_in(governed)
    governed.git("switch", "--quiet", f"wp/{NAME}")
    why = governed.done("why").out
    assert "verdict: not required by policy" in why
    assert why.splitlines()[-1].startswith(f"next: git merge --no-ff --no-edit wp/{NAME}")
    assert "missing" not in governed.done("show").out
    page = governed.done("report", "pr", "--base", "main").out
    assert "- requires no verdict; once merged, it is `MERGED (not judged)`" in page
    assert "waits for" not in page


def test_on_another_branch_status_says_what_is_merged(governed: Governed) -> None:
    handed_in(governed)
    governed.git("merge", "--quiet", "--no-ff", "--no-edit", f"wp/{NAME}")
    governed.git("switch", "--quiet", "--create", "other")
    governed.write("other.txt", "Other\n")
    governed.commit("Other")
    said = governed.done("status").out
    assert f"merged on main: {NAME}; their lanes are shown there\n" in said
    assert "requires a merge" not in said


@pytest.mark.parametrize("command", ["show", "why", "log show", "submit --check", "done", "block --reason x"])
def test_without_an_id_the_packet_of_the_branch_is_meant(governed: Governed, command: str) -> None:
    begun(governed)
    governed.done("start", NAME)
    write_program(governed)
    governed.commit("Greet the user")
    words = [*command.split(), *(["--waits-for", "y"] if command.startswith("block") else [])]
    answer = governed.json(*words)
    assert answer["ok"]
    assert answer["data"]["id"] == NAME


@pytest.mark.parametrize("command", ["show", "done", "block --reason x --waits-for y"])
def test_a_branch_without_a_packet_needs_an_id(governed: Governed, command: str) -> None:
    begun(governed)
    refused = governed(*command.split())
    assert refused.status == 2
    assert "give a WP_ID: branch main does not belong to a packet (missing_argument)" in refused.err


def test_where_the_policy_says_so_commands_commit_what_they_wrote(governed: Governed) -> None:
    governed.done("init")
    governed.replace(".GOV/policy/policy.toml", 'form = "light"\n', 'form = "light"\ncommit = true\n')
    governed.commit("Governance")
    governed.write("unrelated.txt", "not of the command\n")
    governed.done(*NEW)
    assert governed.git("log", "-1", "--format=%s").strip() == f"workpacket new {NAME}"
    assert governed.git("status", "--porcelain").strip() == "?? unrelated.txt"


@remembered
def landed_by_commands(governed: Governed) -> None:
    handed_in(governed)
    governed.git("merge", "--quiet", f"wp/{NAME}")


def test_every_output_says_that_nobody_judged_it(governed: Governed) -> None:
    landed_by_commands(governed)
    for words in (["show", NAME], ["why", NAME], ["log", "show", NAME], ["status"], ["list"], ["board", "show"]):
        assert "not judged" in governed(*words).out, words
    for command in ("show", "why", "log show"):
        assert "not required by policy" in governed(*command.split(), NAME).out, command
    assert governed("check").status == 0
    assert [packet["lanes"] for packet in governed.json("list")["data"]["work"]] == [["MERGED"]]


def test_a_later_verdict_of_somebody_else_validates_it(governed: Governed) -> None:
    landed_by_commands(governed)
    assert governed.refused("verdict", NAME, "PASS", "--reason", "It greets.") == ["verdict_by_coder"]
    assert governed.refused("verdict", NAME, "PASS", "--as", "eve") == ["report_missing"]
    governed.done("verdict", NAME, "PASS", "--reason", "It greets.", "--as", "eve", "--commit")
    assert governed.json("show", NAME)["data"]["lane"] == "VALIDATED"


def test_what_lands_otherwise_than_it_was_submitted_is_not_merged(governed: Governed) -> None:
    handed_in(governed)
    governed.git("merge", "--quiet", "--squash", f"wp/{NAME}")
    governed.write("src/greet.py", "def greet(name):\n    return name\n")
    governed.commit("Greet the user, nearly")
    assert governed.json("show", NAME)["data"]["lane"] == "IN_REVIEW"


def test_what_is_missing_is_listed_with_the_command_that_supplies_it(governed: Governed) -> None:
    governed.done("init", "--commit")
    draft = governed.done("new", "Greet the user", "--scope", "src/")
    assert draft.next == f"workpacket refine {NAME} --requirement TEXT"  # nothing is required yet
    before = governed.files()
    assert governed.refused("start", NAME) == ["refinement_incomplete", "refinement_missing", "done_means_missing"]
    assert (governed.files(), governed.git("branch", "--show-current").strip()) == (before, "main")
    governed.write(".GOV/spec/SPEC_v1.md", "# Specification\n\n## 1 Main body\n\n### 1.1 Greeting\n\nIt greets.\n")
    governed.replace(DOCUMENT, "- IN_SCOPE_PATHS: `src/`\n", "- IN_SCOPE_PATHS: `src/`\n## DONE_MEANS\n- It greets.\n")
    governed.done("refine", NAME, "--anchor", "1.1", "--refinement", "The name is an argument.")
    governed.replace(".GOV/spec/SPEC_v1.md", "It greets.", "It greets by name.")
    assert governed.refused("start", NAME) == ["requirement_changed"]
    governed.done("refine", NAME, "--anchor", "greeting")
    assert "The name is an argument." in governed.read(DOCUMENT)
    governed.done("start", NAME)


def test_a_requirement_can_be_added_after_the_packet(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.done("new", "Greet the user", "--scope", "src/", "--criterion", "It greets.")
    named = governed.done("refine", NAME, "--anchor", "Main body")
    assert "no text written by you" in named.out
    governed.done("refine", NAME, "--requirement", "It greets.", "--refinement", "The name is an argument.")
    assert "### Greet the user\n\nIt greets.\n" in governed.read(".GOV/spec/SPEC_v1.md")
    assert "- IN_SCOPE_PATHS: `src/`, `.GOV/spec/SPEC_v1.md`\n" in governed.read(DOCUMENT)
    governed.done("start", NAME)


@pytest.mark.parametrize("text", ["The name is an argument.", "სახელი არის არგუმენტი", "名前は引数"])
def test_a_refinement_says_something_in_any_script(governed: Governed, text: str) -> None:
    governed.done("init", "--commit")
    governed.done("new", "Greet the user", "--refinement", text)
    assert "refinement_missing" not in governed.refused("start", NAME)


@pytest.mark.parametrize("text", ["Soon.", "One module.", "TODO", "名前"])
def test_a_refinement_of_one_or_two_words_says_nothing(governed: Governed, text: str) -> None:
    governed.done("init", "--commit")
    governed.done("new", "Greet the user", "--refinement", text)
    assert "refinement_missing" in governed.refused("start", NAME)


@pytest.mark.parametrize("anchor", ["9.9", "1"])
def test_an_anchor_names_one_section(governed: Governed, anchor: str) -> None:
    governed.done("init", "--commit")
    governed.write(".GOV/spec/SPEC_v1.md", "# S\n\n## 1 One\n\nText.\n\n## 1 Two\n\nText.\n")
    assert governed.refused("new", "X", "--anchor", anchor) == ["anchor_not_found"]


def test_a_light_packet_is_raised_by_its_next_revision(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.done(*NEW)
    governed.done("new", "--next", "WP-1-Greet-The-User", "--from", NAME)
    stub = governed.read(".GOV/task_packets/stubs/WP-1-Greet-The-User-v2.md")
    assert f"- The program greets its user by name.\n  - PROVED_BY: `{PROVE}`" in stub
    assert "`src/`" in stub
    assert governed.json("list")["data"]["work"][1]["kind"] == "stub"


def test_an_amended_packet_rests_on_its_new_text(governed: Governed) -> None:
    begun(governed)
    governed.done("start", NAME)
    governed.replace(DOCUMENT, "`src/`", "`src/`, `docs/`")
    governed.done("packet", "amend", NAME, "--reason", "The manual belongs to it.")
    governed.commit("Amended")
    assert governed("check", "--base", "main").status == 0
    governed.write(DOCUMENT, f"{governed.read(DOCUMENT)}\nThe name is read from a file.\n")
    governed.commit("Rewritten")
    assert "approved_file_changed" in governed("check", "--base", "main").out


def test_the_section_that_requires_it_is_traced_like_the_anchor_of_a_refinement(governed: Governed) -> None:
    begun(governed)

    def anchors() -> list[tuple[str, str]]:
        (traced,) = governed.json("trace", NAME)["data"]["packets"]
        return [(one["name"], one["state"]) for one in traced["anchors"]]

    ((name, state),) = anchors()
    assert state == "holds"
    specification = ".GOV/spec/SPEC_v1.md"
    assert NAME in governed.done("trace", "impact", name).out
    governed.write(specification, governed.read(specification).replace("by name.", "by name, loudly."))
    assert anchors() == [(name, "changed")]
    found = [(one["code"], one["path"]) for one in governed.json("trace", NAME)["data"]["doubts"]]
    assert ("requirement_changed", DOCUMENT) in found
    governed.write(specification, governed.read(specification).replace(name, "Something else"))
    assert anchors() == [(name, "changed")]


def test_in_the_full_form_an_anchor_is_copied_from_the_specification(governed: Governed) -> None:
    governed.begin()
    governed.done(
        "new", "Greeting", "--form", "full", "--criterion", "It greets.", "--prove", "pytest", "--scope", "src/"
    )
    governed.done("refine", "WP-1-Greeting-v1", "--anchor", "1.1")
    text = governed.read(".GOV/refinements/WP-1-Greeting-v1.md")
    assert "- CONTEXT_START_LINE: 5\n- CONTEXT_END_LINE: 6\n- CONTEXT_TOKEN: 1.1 Greeting\n" in text
    assert "  The program greets its user by name.\n  ```" in text
    stub = governed.read(".GOV/task_packets/stubs/WP-1-Greeting-v1.md")
    assert "- It greets.\n  - PROVED_BY: `pytest`" in stub


def test_anchors_that_were_left_open_are_filled_in_one_by_one(governed: Governed) -> None:
    governed.begin()
    name, path = "WP-1-Greeting-v1", ".GOV/refinements/WP-1-Greeting-v1.md"
    governed.done("new", "Greeting", "--form", "full")
    governed.replace(f".GOV/task_packets/stubs/{name}.md", "Roadmap):\n  - None known.", "Roadmap):\n  - 1.1\n  - 1.2")
    governed.done("refine", name)
    assert f"-> workpacket refine {name} --anchor HEADING" in governed("refine", name, "--present").err
    for heading in ("1.1", "1.1 Greeting"):
        governed.done("refine", name, "--anchor", heading)
    text = governed.read(path)
    assert text.count("- CONTEXT_TOKEN: 1.1 Greeting\n") == 2
    assert "#### ANCHOR 2\n- SPEC_ANCHOR: 1.1 Greeting\n" in text
    assert governed.refused("refine", name, "--anchor", "1.1") == ["anchor_not_found"]
    assert governed.read(path) == text


def test_a_dependency_may_be_on_another_branch_but_must_exist(governed: Governed) -> None:
    governed.begin()
    governed.git("switch", "-q", "-c", "side")
    governed.done("new", "Greeting")
    governed.commit("Greeting")
    governed.git("switch", "-q", "main")
    for form in ("light", "full"):
        unknown = governed("new", "Sing", "--form", form, "--depends", "WP-1-Gret-v1")
        assert (unknown.status, unknown.codes) == (2, ["packet_unknown"])
        governed.done("new", f"Sing {form}", "--form", form, "--depends", "WP-1-Greeting-v1")
    assert "WP-1-Greeting-v1" in governed.read(".GOV/task_packets/WP-1-Sing-Light-v1.md")
    assert "- WP-1-Greeting-v1" in governed.read(".GOV/task_packets/stubs/WP-1-Sing-Full-v1.md")


def test_a_dependency_that_is_merged_is_done_if_the_policy_says_so(governed: Governed) -> None:
    landed_by_commands(governed)
    governed.done(
        "new", "Sing", "--depends", NAME, "--criterion", "It sings.", "--scope", "src/", "--anchor", "Greet the user",
        "--refinement", "A song follows the greeting.",
    )  # fmt: skip
    governed.commit("Sing")
    governed.replace(".GOV/policy/policy.toml", ', "MERGED"]', "]")
    governed.commit("Only what was judged counts")
    assert governed.refused("start", "WP-1-Sing-v1") == ["dependency_unmet"]
    governed.git("revert", "--quiet", "--no-edit", "HEAD")
    governed.done("start", "WP-1-Sing-v1")
    governed.commit("Started")
    assert governed("check", "--base", "main").status == 0


@pytest.mark.parametrize(("setting", "here", "elsewhere"), [("base", True, False), ("never", False, False)])
def test_the_policy_says_where_the_board_is_written(
    governed: Governed, setting: str, *, here: bool, elsewhere: bool
) -> None:
    governed.done("init", "--form", "full")
    governed.write(
        ".GOV/policy/policy.toml", governed.read(".GOV/policy/policy.toml") + f'\n[board]\ncommit = "{setting}"\n'
    )
    governed.commit("Governance")
    board = ".GOV/roles_shared/TASK_BOARD.md"
    governed.done("new", "WP-1-Song-v1", "--what", "Sing")
    assert ("WP-1-Song-v1" in governed.read(board)) is here
    governed.commit("A song")
    governed.git("switch", "--quiet", "--create", "other")
    governed.done("new", "WP-1-Dance-v1", "--what", "Dance")
    assert ("WP-1-Dance-v1" in governed.read(board)) is elsewhere
    assert "WP-1-Dance-v1" in governed("board", "show").out
    codes = {finding["code"] for finding in governed.json("check")["findings"]}
    assert not codes & {"work_on_no_board", "board_drift", "stub_without_row", "registry_drift"}


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Greet the user", "Greet-The-User"),
        ("Größe ändern", "Grosse-Andern"),
        ("Łódź: Æsir på øya, Đà Nẵng, Þing", "Lodz-AEsir-Pa-Oya-Da-Nang-Thing"),
        ("  read  JSON, then YAML!", "Read-JSON-Then-YAML"),
        ("one two three four five six seven eight nine ten", "One-Two-Three-Four-Five-Six-Seven-Eight"),
        ("con", "Item-"),
        ("日本語", "Item-"),
    ],
)
def test_a_title_makes_an_id(title: str, slug: str) -> None:
    assert slug_of(title).startswith(slug)
    assert id_for(title, "2", ()).text == f"WP-2-{slug_of(title)}-v1"
    assert id_for(title, "2", {f"WP-2-{slug_of(title)}-v1".lower()}).text == f"WP-2-{slug_of(title)}-2-v1"


def test_an_id_that_another_branch_has_is_not_given_again(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.git("switch", "--quiet", "--create", "elsewhere")
    governed.done(*NEW, "--commit")
    governed.git("switch", "--quiet", "main")
    assert "WP-1-Greet-The-User-2-v1 is a draft" in governed.done(*NEW).out


@pytest.mark.parametrize("gate", ["activation", "amendment"])
def test_a_policy_with_approvers_asks_for_an_approval_whatever_it_says_of_packets(gate: str) -> None:
    text = '[packets]\napprovals = "none"\n'
    assert packets_policy(PolicyDocument.from_bytes(text.encode()).root).approvals == "none"
    named = f'{text}[approvals.gates.{gate}]\nroles = ["a"]\nthreshold = 1\nseparation = []\n'
    assert packets_policy(PolicyDocument.from_bytes(named.encode()).root).approvals == "signed"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_packet_is_light_whatever_its_line_ends_are(end: str) -> None:
    text = end.join(["# Greet the user", "", "## SCOPE", "- FORM: light", "- Why: It is polite.", ""])
    assert is_light(Source.from_bytes(DOCUMENT, text.encode()))
    assert not is_light(Source.from_bytes(DOCUMENT, text.replace("light", "lighter").encode()))


def test_search_tells_the_lane_and_what_events_say(governed: Governed) -> None:
    governed.done("init", "--commit")
    governed.done("new", "Greet the user", "--scope", "src/")
    found = governed.done("search", "created", "greet").out
    assert f"{NAME}  STUB  Greet the user\n" in found
    assert "log: 2026-03-01 created by " in found
    assert governed.done("search", "lane_to").out.startswith("0 packets\n")
