"""`workpacket help completion`: the scripts that shells load to complete command lines, and the completions that these
scripts request.

Each request reads the declarations of the commands, so completions always match the installed version. Placeholders are
completed from the current repository.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from workpacket.cli.commands import GROUPS, below, resolve
from workpacket.cli.main import load
from workpacket.cli.options import Arguments, Command, Option, subcommand, usage
from workpacket.cli.workspace import open_workspace
from workpacket.lifecycle.gates import STANDARD
from workpacket.model.ids import WorkPacketId
from workpacket.shell.tree import find_documents


def words_for(placeholder: str) -> Iterable[str]:
    """Return the values in order, without duplicates; `()` for an unknown placeholder."""
    source = _SOURCES.get(placeholder)
    return sorted(set(source())) if source else ()


def _packets() -> Iterable[str]:
    return (packet.text for packet in _ids())


def _bases() -> Iterable[str]:
    return (packet.base for packet in _ids())


def _ids() -> Iterable[WorkPacketId]:
    """Read ids from file names only, so that the id of a packet with an unreadable file can still be completed."""
    for found in find_documents(open_workspace().root):
        if found.kind not in {"stub", "packet"}:
            continue
        *_, folder, name = found.path.split("/")
        packet = WorkPacketId.try_parse(folder if name == "packet.md" else name.removesuffix(".md"))
        if packet is not None:
            yield packet


def _lanes() -> Iterable[str]:
    from workpacket.shell.configuration import lanes_here

    return lanes_here(open_workspace().root).tokens


def _codes() -> Iterable[str]:
    from workpacket.report.catalogue import catalogue

    return catalogue()


def _kinds() -> Iterable[str]:
    from workpacket.documents.places import PLACES

    return (kind for _, kind in PLACES)


def _branches() -> Iterable[str]:
    """Return only branches, because completing a commit hash is rarely useful."""
    from pathlib import Path

    from workpacket.git.repository import branch_names, find_repository

    return branch_names(find_repository(Path.cwd()))


_SOURCES: Mapping[str, Callable[[], Iterable[str]]] = {
    "WP_ID": _packets,
    "BASE_WP_ID": _bases,
    "LANE": _lanes,
    "CODE": _codes,
    "KIND": _kinds,
    "GATE": lambda: STANDARD,
    "BRANCH": _branches,
    "REV": _branches,
}


FILES = ":files"  # asks the shell to complete file names, which it does better than we could
_PLACES = frozenset({"PATH", "FILE", "FOLDER", "PLACE"})

Words = Callable[[str], Iterable[str]]  # the values of a placeholder such as WP_ID


class Completion(NamedTuple):
    word: str
    meaning: str = ""


def candidates(line: Sequence[str], words_for: Words) -> list[Completion]:
    """Return completions for the last word of `line`, which may be incomplete. `line` starts after `workpacket`."""
    *before, begun = line or [""]
    before = [word for word in before if word != "="]  # bash passes `--format=js` as three words
    begun = "" if begun == "=" else begun
    if not before:
        rows = [row for _, group in GROUPS for row in group]
        found = [Completion(typed, summary) for typed, _, summary in rows if " " not in typed]
    else:
        name, count = resolve(before)
        found = _in_command(load(name), before[count:], begun, words_for) if name else []
        if len(before) == 1 and not begun.startswith("-"):
            found += [Completion(word, summary) for word, summary in below(before[0])]
    return [candidate for candidate in found if candidate.word == FILES or candidate.word.startswith(begun)]


def _in_command(command: Command, before: Sequence[str], begun: str, words_for: Words) -> list[Completion]:
    if "--" in before:
        return [Completion(FILES)]
    options = {f"--{option.name}": option for option in command.options}
    if before and before[-1] in options and options[before[-1]].value:
        return _values(options[before[-1]], words_for)
    name, equals, _ = begun.partition("=")
    if equals:
        values = _values(options[name], words_for) if name in options else []
        return [Completion(f"{name}={value}") for value, _ in values if value != FILES]
    if begun.startswith("-"):
        given = {word.partition("=")[0] for word in before}
        free = [option for option in command.options if option.many or f"--{option.name}" not in given]
        return [Completion(f"--{option.name}", option.help) for option in free]
    return _arguments(command.arguments, _arguments_among(before, options), words_for)


def _values(option: Option, words_for: Words) -> list[Completion]:
    return [Completion(choice) for choice in option.choices] or _standing_for(option.value.split("|"), words_for)


def _arguments_among(before: Sequence[str], options: dict[str, Option]) -> list[str]:
    """Return the words that are neither options nor option values."""
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


def _arguments(declared: str, given: Sequence[str], words_for: Words) -> list[Completion]:
    """Return completions for an argument. `declared` is as in the help: `WP_ID PASS|FAIL`, or `show | sync [WP_ID...]`
    if the words are subcommands.
    """
    forms = [form.split() for form in declared.split("|")]
    if declared[:1].islower():
        if not given:
            return [Completion(form[0]) for form in forms]
        places = next((form[1:] for form in forms if form[0] == given[0]), [])
        given = given[1:]
    else:
        places = declared.split()
    if places and len(given) >= len(places) and "..." in places[-1]:
        place = places[-1]
    else:
        place = places[len(given)] if len(given) < len(places) else ""
    return _standing_for(place.strip("[].").split("|"), words_for)


def _standing_for(names: Sequence[str], words_for: Words) -> list[Completion]:
    """Return the values that the given words stand for. Known placeholders have several values; any other word, such as
    PASS in `PASS|FAIL`, is literal.
    """
    found: list[Completion] = []
    for name in names:
        known = [Completion(word) for word in words_for(name)]
        if name in _PLACES and FILES not in [candidate.word for candidate in found]:
            found.append(Completion(FILES))
        elif known or len(names) == 1:
            found += known
        elif name and name not in _PLACES:
            found.append(Completion(name))
    return found


_BASH = """# Completion for bash: source it, or put it into ~/.local/share/bash-completion/completions/workpacket
_workpacket() {
    local found begun="${COMP_WORDS[COMP_CWORD]}"
    [[ $begun == "=" ]] && begun=""
    COMPREPLY=()
    while IFS=$'\\t' read -r found _; do
        if [[ $found == :files ]]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r found; do COMPREPLY+=("$found"); done < <(compgen -f -- "$begun")
        else
            COMPREPLY+=("$found")
        fi
    done < <("${COMP_WORDS[0]}" help completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _workpacket workpacket
"""

_ZSH = """#compdef workpacket
# Completion for zsh: put it as _workpacket into a folder of $fpath, or source it behind compinit.
_workpacket() {
    local line files=0
    local -a found
    while IFS= read -r line; do
        if [[ $line == :files ]]; then
            files=1
        else
            line=${line//:/\\\\:}
            found+=("${line/$'\\t'/:}")
        fi
    done < <("$words[1]" help completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#found )) && _describe workpacket found
    (( files )) && _files
}
if [[ $funcstack[1] == _workpacket ]]; then _workpacket "$@"; else compdef _workpacket workpacket; fi
"""

_FISH = """# Completion for fish: put it into ~/.config/fish/completions/workpacket.fish
function __workpacket_words
    set --local line (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token)
    for found in ($line[1] help completion words -- $line[2..] 2>/dev/null)
        if test "$found" = :files
            __fish_complete_path (commandline --current-token)
        else
            echo $found
        end
    end
end
complete --command workpacket --no-files --arguments '(__workpacket_words)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def run(arguments: Arguments) -> int:
    wanted = subcommand(arguments, (*SCRIPTS, "words"))
    if wanted != "words" and arguments.words:
        raise usage(arguments.command, "unexpected_argument", "expected one shell")
    lines = _words(arguments.words) if wanted == "words" else SCRIPTS[wanted].splitlines()
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        sys.stdout.write(render_envelope("completion", 0, [], {"lines": [*lines]}))
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _words(line: list[str]) -> list[str]:
    from workpacket.report.terminal import escape

    found = candidates(line, _words_for)
    return [f"{escape(word)}\t{meaning}" if meaning else escape(word) for word, meaning in found]


def _words_for(placeholder: str) -> Iterable[str]:
    """Return the values of a placeholder in this repository; none outside a repository."""
    from workpacket.problem import WorkpacketError

    try:
        return list(words_for(placeholder))
    except WorkpacketError:
        return []


COMMAND = Command(
    "completion",
    run,
    arguments="bash | zsh | fish | words [-- WORD...]",
    description="""
The printed script calls `help completion words` to get the possible next words, passing the words typed so far after
`--`.""",
    examples=('eval "$(workpacket help completion bash)"', "workpacket help completion words -- check --format ''"),
)
