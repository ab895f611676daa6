"""What the JSON Schema of a kind of document finds."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        code="field_missing",
        title="A field is missing",
        explanation=(
            "Gates and reports read this field. Without it they would have to guess, and two readers would guess "
            "differently."
        ),
        remedy="Add the field; the hint shows an example. `workpacket schema KIND` prints what the document needs.",
        family="document",
    ),
    Reason(
        code="field_unknown",
        title="A field is not known here",
        explanation=(
            "Nothing reads a field that this kind of document does not have, so what it says has no effect. Most often "
            "it is a misspelling of one that would have."
        ),
        remedy="Correct the name as the hint says, or remove the field. `workpacket schema KIND` lists the fields.",
        family="document",
    ),
    Reason(
        code="field_type",
        title="A field holds the wrong kind of value",
        explanation=(
            "A list where text belongs, or text where a number belongs, is of no use to anything that reads the field."
        ),
        remedy="Write a value of the kind that the message names. Quotes make text of what YAML takes for a number.",
        family="document",
    ),
    Reason(
        code="field_value",
        title="A field holds a value that it may not have",
        explanation=(
            "The value has the right kind, but is none of the permitted ones, has another form, or is too long or too "
            "short. What reads the field would take it for something else or for nothing."
        ),
        remedy="Write one of the values, or the form, that the message names.",
        family="document",
    ),
    Reason(
        code="rule_not_run",
        title="A rule was not run",
        explanation=(
            "What another rule found in this document leaves it nothing to judge. That it found nothing says nothing."
        ),
        remedy="Correct the finding that the message names, then check again.",
        family="reading",
        severity="info",
        strict_severity="info",
    ),
    Reason(
        code="findings_cut",
        title="A file has more findings of a kind than are listed",
        explanation="So many findings come from one cause, and listing them all would bury what else is wrong.",
        remedy="Correct the cause, then check again: the rest is listed then.",
        family="reading",
        severity="info",
        strict_severity="info",
    ),
)
