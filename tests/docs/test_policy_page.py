"""The policy on the page is one that the tool accepts and understands as the page says."""

from __future__ import annotations

import re

from architecture.source_tree import ROOT
from workpacket.documents.policy import Policy
from workpacket.report.catalogue import catalogue
from workpacket.rules.settings import settings_findings, settings_of
from workpacket.shell.examining import examine_bytes
from workpacket.text.source import Source

PATH = ".GOV/policy/policy.toml"


def shown_policy() -> str:
    match = re.search(r"```toml\n(.*?)```", (ROOT / "docs" / "policy.md").read_text(encoding="utf-8"), re.DOTALL)
    assert match is not None
    return match.group(1)


def test_the_policy_on_the_page_has_no_fault() -> None:
    assert examine_bytes(PATH, "policy", shown_policy().encode()).findings == "[]"


def test_it_means_what_the_page_says() -> None:
    source = Source(PATH, shown_policy())
    root = Policy(source).at("check")
    assert root is not None
    settings = settings_of(root, source)
    assert settings.profile == "strict"
    assert settings.severities == {"home_path": "error", "date_only": "off"}
    assert [(ignore.code, ignore.reason) for ignore in settings.ignores] == [
        ("mojibake", "Closed packets are kept as they were signed.")
    ]
    assert list(settings_findings(settings, catalogue())) == []
