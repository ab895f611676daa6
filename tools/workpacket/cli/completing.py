"""What may stand next on a command line, read from the declarations of the commands.

The scripts that shells load ask this for every completion, so that they never know less than the installed version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from workpacket.cli.commands import COMMANDS, module_of
from workpacket.cli.main import load
from workpacket.cli.options import Command, Option

FILES = ":files"  # asks the shell to complete names of files, which it does better
_PLACES = frozenset({"PATH", "FILE", "FOLDER", "PLACE"})

Words = Callable[[str], Iterable[str]]  # the words that a placeholder such as WP_ID stands for


class Candidate(NamedTuple):
    word: str
    meaning: str = ""


def candidates(line: Sequence[str], words_for: Words) -> list[Candidate]:
    """What the last word of `line`, which may be begun or empty, can be. `line` begins behind `workpacket`."""
    *before, begun = line or [""]
    before = [word for word in before if word != "="]  # bash hands on `--format=js` as three words
    begun = "" if begun == "=" else begun
    if not before:
        found = [Candidate(name, summary) for name, _, summary in COMMANDS]
    elif module_of(before[0]) is None:
        found = []
    else:
        found = _in_command(load(before[0]), before[1:], begun, words_for)
    return [candidate for candidate in found if candidate.word == FILES or candidate.word.startswith(begun)]


def _in_command(command: Command, before: Sequence[str], begun: str, words_for: Words) -> list[Candidate]:
    if "--" in before:
        return [Candidate(FILES)]
    options = {f"--{option.name}": option for option in command.options}
    if before and before[-1] in options and options[before[-1]].value:
        return _values(options[before[-1]], words_for)
    name, equals, _ = begun.partition("=")
    if equals:
        values = _values(options[name], words_for) if name in options else []
        return [Candidate(f"{name}={value}") for value, _ in values if value != FILES]
    if begun.startswith("-"):
        given = {word.partition("=")[0] for word in before}
        free = [option for option in command.options if option.many or f"--{option.name}" not in given]
        return [Candidate(f"--{option.name}", option.help) for option in free]
    return _arguments(command.arguments, _arguments_among(before, options), words_for)


def _values(option: Option, words_for: Words) -> list[Candidate]:
    return [Candidate(choice) for choice in option.choices] or _standing_for(option.value.split("|"), words_for)


def _arguments_among(before: Sequence[str], options: dict[str, Option]) -> list[str]:
    """The words that are neither an option nor the value of one."""
    found: list[str] = []
    takes_next = False
    for word in before:
        if takes_next:
            takes_next = False
        elif word.startswith("-") and word != "-":
            takes_next = word in options and bool(options[word].value)
        else:
            found.append(word)
    return found


def _arguments(declared: str, given: Sequence[str], words_for: Words) -> list[Candidate]:
    """`declared` is what the help shows: `WP_ID PASS|FAIL`, or `show | sync [WP_ID...]` where words are subcommands."""
    forms = [form.split() for form in declared.split("|")]
    if declared[:1].islower():
        if not given:
            return [Candidate(form[0]) for form in forms]
        places = next((form[1:] for form in forms if form[0] == given[0]), [])
        given = given[1:]
    else:
        places = declared.split()
    if places and len(given) >= len(places) and "..." in places[-1]:
        place = places[-1]
    else:
        place = places[len(given)] if len(given) < len(places) else ""
    return _standing_for(place.strip("[].").split("|"), words_for)


def _standing_for(names: Sequence[str], words_for: Words) -> list[Candidate]:
    """Placeholders are known by name; a word that names nothing, like PASS in `PASS|FAIL`, stands for itself."""
    found: list[Candidate] = []
    for name in names:
        known = [Candidate(word) for word in words_for(name)]
        if name in _PLACES and FILES not in [candidate.word for candidate in found]:
            found.append(Candidate(FILES))
        elif known or len(names) == 1:
            found += known
        elif name and name not in _PLACES:
            found.append(Candidate(name))
    return found
