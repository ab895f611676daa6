"""What the people of the tour write by hand."""

from __future__ import annotations

NAME = "WP-1-Greeting-v1"
STUB = f".GOV/task_packets/stubs/{NAME}.md"
REFINEMENT = f".GOV/refinements/{NAME}.md"
PACKET = f".GOV/task_packets/{NAME}.md"
BOARD = ".GOV/roles_shared/TASK_BOARD.md"
SPECIFICATION = ".GOV/spec/SPEC_v1.md"

SPECIFICATION_TEXT = """# Specification

## 1 Main body

### 1.1 Greeting
The program greets its user in German, French and Italian.

## 2 Roadmap
Later it will sing.
"""
REQUIREMENT = SPECIFICATION_TEXT.splitlines()[5]

CRITERION = "There is a greeting in each of the three languages."
STUB_EDITS = (
    ("- ROADMAP_POINTER: TODO", "- RISK_TIER: LOW\n- ROADMAP_POINTER: SPEC_v1.md 1.1"),
    ("not Roadmap):\n  - None known.", "not Roadmap):\n  - SPEC_v1.md 1.1 Greeting"),
    ("- IN_SCOPE:\n  - TODO", "- IN_SCOPE:\n  - `src/`\n  - `tests/`"),
    ("CRITERIA (DRAFT)\n- TODO", f"CRITERIA (DRAFT)\n- {CRITERION}\n  - PROVED_BY: `true`"),
)
PACKET_EDITS = (("SEARCH_TERMS: TODO", "SEARCH_TERMS: greeting"),)

# The proof, and two hollow ones that an agent in a hurry might prefer.
PROOF = "python3 -m unittest tests.test_greetings"
TEST = "tests/test_greetings.py"
_TEST_TEXT = """import unittest
from pathlib import Path


class Greetings(unittest.TestCase):
    def test_each_language(self):
"""
EMPTY_TEST = f"{_TEST_TEXT}        pass\n"
SKIPPED_TEST = f'{_TEST_TEXT}        self.skipTest("no time")\n'
REAL_TEST = f"""{_TEST_TEXT}        for language in ("de", "fr", "it"):
            self.assertIn("Hello", Path(f"src/{{language}}.txt").read_text("utf-8"))
"""

# The work, in steps that are not repeated after a crash.
WORK = "src/translate.sh"
WORK_TEXT = f"""set -e
export WORKPACKET_ACTOR=coder
run=$(workpacket runtime run start translate --packet {NAME} --owner $$ --input "text=$1")
for language in de fr it; do
    workpacket runtime run step "$run" "$language" -- \\
        sh -c "echo $language >> ../begun; echo translating into $language; sleep 1; echo $1 > src/$language.txt"
done
workpacket runtime run stop "$run"
"""
