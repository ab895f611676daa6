"""Mutants of real documents: no repair loses a line, none crashes, and repairing twice is repairing once.

The fast tests try twenty of each collection; a round of `nox -s fuzz` tries ten thousand with a seed of its own.
WORKPACKET_FUZZ_MUTANTS sets another number.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import settings

from corpora.real.real_files import lay_out
from rules.mutants import ROOT, try_mutants

PER_EXAMPLE = 1  # of the 20 examples of the fast tests
FAST = 20


def number_of_mutants() -> int:
    examples = settings().max_examples
    return int(os.environ.get("WORKPACKET_FUZZ_MUTANTS", examples * (PER_EXAMPLE if examples <= FAST else 50)))


def seed() -> int:
    """The same one each time, but for a fuzzing round."""
    return time.time_ns() if settings().max_examples > FAST else 20260301


def test_no_mutant_of_a_planted_document_loses_a_line() -> None:
    assert try_mutants(random.Random(seed()), None, number_of_mutants())["mutants"]


def test_no_mutant_of_our_own_documents_loses_a_line() -> None:
    assert try_mutants(random.Random(seed()), ROOT, number_of_mutants())["mutants"]


def test_no_mutant_of_a_real_document_loses_a_line(tmp_path_factory: pytest.TempPathFactory) -> None:
    root: Path = tmp_path_factory.mktemp("mutated-corpus")
    assert lay_out(root) > 0
    assert try_mutants(random.Random(seed()), root, number_of_mutants())["mutants"]
