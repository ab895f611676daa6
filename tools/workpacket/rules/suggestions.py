"""Which known id was meant by one that nobody knows: found without comparing it with every other."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice

from workpacket.model.ids import WorkPacketId, nearest

# A repository that lost its registers has thousands of unknown ids; the first ones show how to mend the others.
_MOST_ANSWERS = 100
_MOST_CANDIDATES = 50


class Suggestions:
    """Ids that differ from the one asked for in one of their words, or in nothing but case or revision."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._asked = 0

    def hint(self, name: str) -> str:
        """`did you mean WP-1-Parser-v2?`, or ''."""
        self._asked += 1
        if self._asked > _MOST_ANSWERS:
            return ""
        # A word that few ids lack says more than one that a thousand do.
        buckets = sorted((self._by_key.get(key, []) for key in _keys(name)), key=len)
        close = dict.fromkeys(other for bucket in buckets for other in bucket[:_MOST_CANDIDATES])
        candidates = (WorkPacketId.try_parse(other) for other in islice(close, _MOST_CANDIDATES))
        meant = nearest(name, [packet for packet in candidates if packet is not None and packet.text != name])
        return f"did you mean {meant}?" if meant is not None else ""

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in sorted(self._known):
            for key in _keys(name):
                found.setdefault(key, []).append(name)
        return found


def _keys(name: str) -> Iterator[str]:
    """The words of an id, and these with each one left out, so that two ids with one word of difference share a key."""
    words = name.casefold().split("-")
    yield "-".join(words)
    # A mistake in the `WP` is seen by everybody, and a mistake in the phase names another phase.
    for index in range(2, len(words)):
        word, words[index] = words[index], ""
        yield "-".join(words)
        words[index] = word
    # A revision that one of the two lacks.
    yield "-".join((*words, ""))
