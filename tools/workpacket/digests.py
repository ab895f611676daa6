"""The hash functions of `hashlib`, without what `hashlib` loads.

Importing it loads OpenSSL, which takes a quarter of the time that Python needs to start. The modules used here belong
to Python as well; `random` uses them for the same reason.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash
    from hashlib import sha1 as _own_sha1
    from hashlib import sha256 as _own_sha256
    from hashlib import sha512 as _own_sha512
else:
    try:
        from _sha1 import sha1 as _own_sha1

        if sys.version_info >= (3, 12):
            from _sha2 import sha256 as _own_sha256
            from _sha2 import sha512 as _own_sha512
        else:
            from _sha256 import sha256 as _own_sha256
            from _sha512 import sha512 as _own_sha512
    except ImportError:  # a Python that was built without them
        from hashlib import sha1 as _own_sha1
        from hashlib import sha256 as _own_sha256
        from hashlib import sha512 as _own_sha512

# OpenSSL is four times as fast, so it is loaded once more than this has been hashed.
_FEW = 1 << 19


class _Sha256:
    """The function in use, and the number of bytes hashed so far."""

    function = _own_sha256
    so_far = 0


def sha256(data: bytes) -> _Hash:
    """Return the same as `hashlib.sha256(data)`."""
    if _Sha256.so_far < _FEW:
        _Sha256.so_far += len(data)
        if _Sha256.so_far >= _FEW:
            import hashlib

            _Sha256.function = hashlib.sha256
    return _Sha256.function(data)


def sha1(data: bytes) -> _Hash:
    """Return the same as `hashlib.sha1(data)`, for ids that git made; nothing that matters for security uses it."""
    return _own_sha1(data, usedforsecurity=False)


def sha512(data: bytes) -> _Hash:
    """Return the same as `hashlib.sha512(data)`."""
    return _own_sha512(data)
