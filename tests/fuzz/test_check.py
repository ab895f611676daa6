"""The properties of `check` and of repairs on any bytes, for as long as the fuzzing goes on."""

from __future__ import annotations

from documents.test_any_bytes import (
    test_a_source_gives_back_its_bytes,
    test_any_bytes_end_with_findings_that_the_catalogue_knows,
    test_repairing_any_bytes_comes_to_rest,
)

__all__ = [
    "test_a_source_gives_back_its_bytes",
    "test_any_bytes_end_with_findings_that_the_catalogue_knows",
    "test_repairing_any_bytes_comes_to_rest",
]
