"""Prints the script that makes a shell complete commands, options, methods, worlds and fields.

bash: put `eval "$(primax completion bash)"` into ~/.bashrc; zsh: the same with zsh into ~/.zshrc;
fish: primax completion fish > ~/.config/fish/completions/primax.fish
"""

import argparse
import json
import sys
from importlib.resources import files
from typing import Any

from primax.errors import check_choice

# Each asks the command itself for words, so that there is one rule for all shells: the last word is
# the one that is being written. Where it has none, the shell completes files.
SCRIPTS = {
    "bash": """\
_primax() {
    local IFS=$'\\n'
    COMPREPLY=($(primax completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}
complete -o default -F _primax primax
""",
    "zsh": """\
#compdef primax
_primax() {
    local -a found
    found=(${(f)"$(primax completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ! $#found )); then _files
    elif [[ $found[1] == *= ]]; then compadd -S '' -a found
    else compadd -a found
    fi
}
compdef _primax primax
""",
    "fish": """\
function __primax_words
    set -l line (commandline -opc) (commandline -ct)
    primax completion words -- $line[2..-1] 2>/dev/null
end
complete -c primax -a '(__primax_words)'
""",
}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", help=", ".join(SCRIPTS))
    parser.add_argument("line", nargs="*", default=[], help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    if args.shell == "words":
        sys.stdout.writelines(f"{word}\n" for word in complete(args.line))
        return
    check_choice("shell", args.shell, SCRIPTS)
    sys.stdout.write(SCRIPTS[args.shell])


def complete(line: list[str]) -> list[str]:
    """The words that may stand where the last of these stands; none where a file may."""
    *before, current = _glued(line) or [""]
    known = json.loads(files("primax.cli").joinpath("words.json").read_text(encoding="utf-8"))
    fitting = (word for word in _possible(known, before, current) if word.startswith(current))
    is_cut = ":" in line[-2:]  # bash then puts the word after the colon
    return [word.removeprefix(current[: current.rfind(":") + 1] * is_cut) for word in fitting]


def _glued(line: list[str]) -> list[str]:
    """The line with names such as noisy:maze whole, which bash cuts into three."""
    words: list[str] = []
    for place, word in enumerate(line):
        if words and ":" in (word, line[place - 1]):
            words[-1] += word
        else:
            words.append(word)
    return words


def _possible(known: dict[str, Any], before: list[str], current: str) -> list[str]:
    commands = known["commands"]
    if not before or before == ["help"]:
        return [*commands, *([] if before else ["help", "--help", "--version"])]
    command = commands.get(before[0])
    if command is None:
        return []
    places, option = list(command["places"]), None
    for word in before[1:]:
        if word.startswith("--"):
            option = word if command["options"].get(word) else None
        elif word == "=":  # bash cuts --preset=smoke into three
            continue
        elif option:
            option = option if command["options"][option].endswith("+") else None
        elif places and not places[0].endswith("+"):
            del places[0]
    if current.startswith("-"):
        return ["--help", *command["options"]]
    kind = command["options"][option] if option else places[0] if places else ""
    return known["values"].get(kind.rstrip("+"), [])
