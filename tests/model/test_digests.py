"""The digests are those of hashlib, and few of them load nothing."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket import digests


@given(st.binary())
def test_they_are_those_of_hashlib(data: bytes) -> None:
    assert digests.sha1(data).hexdigest() == hashlib.sha1(data, usedforsecurity=False).hexdigest()
    assert digests.sha256(data).hexdigest() == hashlib.sha256(data).hexdigest()
    assert digests.sha512(data).digest() == hashlib.sha512(data).digest()


@pytest.mark.parametrize("sizes", [[0], [digests._FEW - 1, 1, 1], [digests._FEW], [1, digests._FEW + 1, 0, 5]])
def test_the_function_changes_and_the_digests_do_not(monkeypatch: pytest.MonkeyPatch, sizes: list[int]) -> None:
    monkeypatch.setattr(digests._Sha256, "so_far", 0)
    monkeypatch.setattr(digests._Sha256, "function", vars(digests)["_own_sha256"])

    found = [digests.sha256(b"a" * size).hexdigest() for size in sizes]

    assert found == [hashlib.sha256(b"a" * size).hexdigest() for size in sizes]
    assert (digests._Sha256.function is hashlib.sha256) == (sum(sizes) >= digests._FEW)


LOADS = """
import sys
from workpacket.digests import sha256
sha256(b"few")
few = "_hashlib" in sys.modules
sha256(b"many" * 1_000_000)
print(few, "_hashlib" in sys.modules)
"""


def test_only_much_data_loads_openssl() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)

    assert done.stdout.split() in (["False", "True"], ["True", "True"])
    if sys.version_info < (3, 13) and sys.platform == "linux":
        assert done.stdout.split() == ["False", "True"]
