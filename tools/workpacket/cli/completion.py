"""`workpacket completion`: what a shell loads to complete our command lines, and what that asks us."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from workpacket.cli.options import Arguments, Command, subcommand, usage

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
    done < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
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
    done < <("$words[1]" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    (( $#found )) && _describe workpacket found
    (( files )) && _files
}
if [[ $funcstack[1] == _workpacket ]]; then _workpacket "$@"; else compdef _workpacket workpacket; fi
"""

_FISH = """# Completion for fish: put it into ~/.config/fish/completions/workpacket.fish
function __workpacket_words
    set --local line (commandline --tokenize --cut-at-cursor --current-process) (commandline --current-token)
    for found in ($line[1] completion words -- $line[2..] 2>/dev/null)
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
        raise usage(arguments.command, "unexpected_argument", "name one shell")
    lines = _words(arguments.words) if wanted == "words" else SCRIPTS[wanted].splitlines()
    if arguments.flag("json"):
        from workpacket.report.json_report import render_envelope

        sys.stdout.write(render_envelope("completion", 0, [], {"lines": [*lines]}))
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _words(line: list[str]) -> list[str]:
    from workpacket.cli.completing import candidates
    from workpacket.report.door import escape

    found = candidates(line, _words_for)
    return [f"{escape(word)}\t{meaning}" if meaning else escape(word) for word, meaning in found]


def _words_for(placeholder: str) -> Iterable[str]:
    """What stands in this repository for a placeholder; nothing where there is no repository to look at."""
    from workpacket.cli.completion_words import words_for
    from workpacket.errors import WorkpacketError

    try:
        return list(words_for(placeholder))
    except WorkpacketError:
        return []


COMMAND = Command(
    "completion",
    "print what a shell needs to complete command lines",
    run,
    arguments="bash | zsh | fish | words [-- WORD...]",
    description="""
The printed script asks `completion words` for what may stand next, with the words typed so far behind `--`.""",
    examples=('eval "$(workpacket completion bash)"', "workpacket completion words -- check --format ''"),
)
