"""The policy on the page is one that the tool accepts and understands as the page says."""

from __future__ import annotations

import re

import pytest

from architecture.source_tree import ROOT
from workpacket.documents.policy import PolicyDocument
from workpacket.lifecycle.gates import bearing
from workpacket.lifecycle.policy import (
    COVERAGE_KEYS,
    EVIDENCE_KEYS,
    KEYS,
    CoveragePolicy,
    EvidencePolicy,
    LifecyclePolicy,
    coverage_policy,
    evidence_policy,
    lifecycle_policy,
)
from workpacket.lifecycle.transitions import TRANSITIONS
from workpacket.report.catalogue import catalogue
from workpacket.rules.settings import settings_findings, settings_of
from workpacket.shell.checking import examine_bytes
from workpacket.text.source import Source
from workpacket.value import replace

PATH = ".GOV/policy/policy.toml"


def shown_policies() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "policy.md").read_text(encoding="utf-8"), re.DOTALL)


def shown_policy() -> str:
    return shown_policies()[0]


def test_the_policies_on_the_page_have_no_fault() -> None:
    assert [examine_bytes(PATH, "policy", text.encode()).findings for text in shown_policies()] == ["[]"] * 8


def test_the_page_shows_every_setting_of_the_lifecycle_with_its_default() -> None:
    source = Source(PATH, shown_policies()[1])
    shown = lifecycle_policy(PolicyDocument(source).root, source)
    default = LifecyclePolicy()
    assert set(shown.origins) == set(KEYS)
    assert {key for key in KEYS if getattr(shown, key) != getattr(default, key)} == {
        "target_branch",
        "claim_store",
        "checklist",
        "gates",
        "lanes",
    }


def test_the_actors_on_the_page_are_understood() -> None:
    source = Source(PATH, shown_policies()[4])
    actors = lifecycle_policy(PolicyDocument(source).root, source).actors
    assert (actors.faults, actors.person("coder-1"), actors.separation) == ((), "ann", ("coder", "operator"))


def test_the_page_shows_every_setting_of_proofs_with_its_default() -> None:
    source = Source(PATH, shown_policies()[2])
    root = PolicyDocument(source).root
    shown = evidence_policy(root)
    assert root is not None
    assert tuple(root.mapping["evidence"].mapping) == EVIDENCE_KEYS
    assert replace(shown, ci=None) == EvidencePolicy(env=("JAVA_HOME",))
    assert shown.trusted_ci is not None
    assert shown.trusted_ci.faults == ()
    assert shown.trusted_ci.issuer == "https://token.actions.githubusercontent.com"


def test_the_page_shows_every_setting_of_coverage() -> None:
    root = PolicyDocument(Source(PATH, shown_policies()[3])).root
    assert root is not None
    assert tuple(root.mapping["coverage"].mapping) == COVERAGE_KEYS
    assert coverage_policy(root) == CoveragePolicy("required", ("translations/*.po",))


@pytest.mark.parametrize(
    "line", ["timeout_seconds = 0", 'timeout_seconds = "x"', "output_bytes = -1", "env = 3", "setup = 3"]
)
def test_a_setting_of_proofs_that_does_not_fit_is_found_and_the_default_stays(line: str) -> None:
    text = f"[evidence]\n{line}\n"
    assert examine_bytes(PATH, "policy", text.encode()).findings != "[]"
    assert evidence_policy(PolicyDocument(Source(PATH, text)).root) == EvidencePolicy()


def test_the_page_names_every_move_that_can_bear_a_gate() -> None:
    rows = [f"| `{row.typed}` | {row.says} |" for row in bearing(TRANSITIONS)]
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page if line.startswith("| `") and "`on`" not in line] == rows


def test_it_means_what_the_page_says() -> None:
    source = Source(PATH, shown_policy())
    root = PolicyDocument(source).at("check")
    assert root is not None
    settings = settings_of(root, source)
    assert settings.profile == "strict"
    assert settings.severities == {"home_path": "error", "date_only": "off"}
    assert [(ignore.code, ignore.reason) for ignore in settings.ignores] == [
        ("mojibake", "Closed packets are kept as they were signed.")
    ]
    assert list(settings_findings(settings, catalogue())) == []
