"""JUnit XML, read by an XML parser and held against a written-down grammar."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given

from report.samples import PACKET, REASONS, STUB, finding, outcome, outcomes
from workpacket.report.ci import render_junit
from workpacket.report.outcome import CheckOutcome

# What the schema used by Jenkins allows of an element, as far as we write it: attributes (all required), then children.
GRAMMAR: dict[str, tuple[set[str], list[str]]] = {
    "testsuites": ({"name", "tests", "failures", "errors"}, ["testsuite"]),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped"}, ["testcase", "system-out"]),
    "testcase": ({"name", "classname"}, ["error", "failure", "system-out"]),
    "failure": ({"type", "message"}, []),
    "error": ({"type", "message"}, []),
    "system-out": (set(), []),
}


def check_grammar(element: ET.Element) -> None:
    attributes, children = GRAMMAR[element.tag]
    assert set(element.attrib) == attributes
    tags = [child.tag for child in element]
    assert tags == sorted(tags, key=children.index), f"children of {element.tag} out of order"
    for child in element:
        check_grammar(child)


def suite_of(result: CheckOutcome) -> ET.Element:
    root = ET.fromstring(render_junit(result, REASONS))
    check_grammar(root)
    suite = root.find("testsuite")
    assert suite is not None
    for tag, attribute in (("testcase", "tests"), (".//failure", "failures"), (".//error", "errors")):
        assert int(suite.attrib[attribute]) == len(suite.findall(tag)), attribute
    return suite


def test_every_file_is_a_test_case_and_a_clean_one_passes() -> None:
    suite = suite_of(outcome(finding(), files={STUB: "stub", PACKET: "packet"}))
    assert {case.attrib["name"]: [child.tag for child in case] for case in suite} == {STUB: ["failure"], PACKET: []}
    assert {case.attrib["classname"] for case in suite} == {"stub", "packet"}


def test_errors_fail_a_file_and_warnings_are_told() -> None:
    warning = finding("stale_cell", "warning", line=5, message="the cell says READY", hint="sync it")
    (case,) = suite_of(outcome(finding(), finding(line=4), warning))
    failure, told = case
    assert failure.tag == "failure"
    assert failure.attrib == {"type": "empty_field", "message": "the field SPEC_ANCHOR is empty (and 1 more finding)"}
    assert f"{STUB}:4:3: error empty_field: the field SPEC_ANCHOR is empty" in (failure.text or "")
    assert told.tag == "system-out"
    assert (told.text or "").strip() == f"{STUB}:5:3: warning stale_cell: the cell says READY\n  help: sync it"


def test_warnings_fail_where_the_check_was_asked_to_fail_on_them() -> None:
    (case,) = suite_of(outcome(finding("stale_cell", "warning"), fail_on="warning"))
    assert [child.tag for child in case] == ["failure"]


def test_a_file_that_cannot_be_read_is_an_error() -> None:
    (case,) = suite_of(outcome(finding("file_unreadable", line=0, message="permission denied"), finding()))
    (error,) = case
    assert error.tag == "error"
    assert "empty_field" in (error.text or "")


def test_a_run_that_looked_at_nothing_is_an_error() -> None:
    (case,) = suite_of(outcome(files={}))
    assert case[0].tag == "error"
    assert case[0].attrib["type"] == "nothing_to_check"


def test_a_finding_of_the_repository_is_a_test_case_of_its_own() -> None:
    names = [case.attrib["name"] for case in suite_of(outcome(finding(path="")))]
    assert names == ["(repository)", STUB]


def test_what_xml_cannot_hold_is_written_visibly() -> None:
    (case,) = suite_of(outcome(finding(message="nul \x00 ]]> <b> & \ufffe"), notes=("\x1b[31m",)))[:1]
    assert case[0].attrib["message"] == "nul \\u0000 ]]> <b> & \\ufffe"


@given(outcomes())
def test_any_outcome_is_well_formed_and_names_every_finding(result: CheckOutcome) -> None:
    suite = suite_of(result)
    text = "".join(suite.itertext())
    assert all(f" {found.severity} {found.code}: " in text for found in result.findings)
