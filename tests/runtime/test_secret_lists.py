"""Of the secrets on the list at least 95 % are hidden, of the harmless values at most 0.5 % are altered."""

from __future__ import annotations

import json

from runtime.secret_lists import harmless_values, secret_values


def test_the_lists_have_the_promised_size() -> None:
    secrets, harmless = secret_values(), harmless_values()
    assert len(secrets) >= 400
    assert len({one.kind for one in secrets}) >= 60
    assert len({json.dumps(value) for value in harmless}) == 2000
