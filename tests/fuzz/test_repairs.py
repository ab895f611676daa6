"""Mutants of documents through every repair, for as long as the fuzzing goes on."""

from __future__ import annotations

from rules.test_mutants import (
    test_no_mutant_of_a_planted_document_loses_a_line,
    test_no_mutant_of_a_real_document_loses_a_line,
    test_no_mutant_of_our_own_documents_loses_a_line,
)

__all__ = [
    "test_no_mutant_of_a_planted_document_loses_a_line",
    "test_no_mutant_of_a_real_document_loses_a_line",
    "test_no_mutant_of_our_own_documents_loses_a_line",
]
