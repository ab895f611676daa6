"""What somebody probably meant to write."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST = 80
_SEARCHES = 50


class Suggestions:
    """Finds the nearest of some known words, fifty times: a search is slow, and who errs more often errs on purpose."""

    def __init__(self) -> None:
        self._searches_left = _SEARCHES

    def nearest(self, word: object, known: Iterable[object]) -> str:
        """The known word that `word` is a misspelling of, or ""."""
        if not isinstance(word, str) or len(word) > _LONGEST or not self._searches_left:
            return ""
        self._searches_left -= 1
        by_spelling = {_spelling(option): option for option in known if isinstance(option, str)}
        spelling = _spelling(word)
        if spelling in by_spelling:
            return by_spelling[spelling]
        import difflib

        close = difflib.get_close_matches(spelling, by_spelling, n=1, cutoff=0.7)
        return by_spelling[close[0]] if close else ""


def _spelling(word: str) -> str:
    """What is left of a word when case and punctuation are not looked at: `Created at` and CREATED_AT are the same."""
    return "".join(character for character in word.casefold() if character.isalnum())
