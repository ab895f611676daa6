"""What is wrong with a value, said to the person who wrote it."""

from __future__ import annotations

from workpacket.value import Value


class Violation(Value):
    """`path` leads from the root of the value to what is wrong; for a missing field, to the mapping that lacks it.

    `code` names a reason of the family "document"; `keyword` is the keyword of the schema that was not met.
    """

    path: tuple[str | int, ...]
    code: str
    keyword: str
    message: str
    hint: str = ""
