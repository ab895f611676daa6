"""Texts that make Markdown parsers work far beyond their length, each of about `size` characters."""

from __future__ import annotations


def _filled(unit: str, size: int) -> str:
    return unit * (size // len(unit))


def _stairs(depth: int) -> str:
    return "".join("  " * level + "- a\n" for level in range(depth))


def hostile_texts(size: int) -> dict[str, str]:
    half = size // 2
    lines = {
        "short lines": "a\n",
        "paragraphs": "a\n\n",
        "items": "- a\n",
        "empty items": "-\n\n\n",
        "headings": "# a\n",
        "underlines": "a\n-\n",
        "rules": "***\n",
        "quotes": "> a\n\n",
        "quotes that never end": ">#\n===\n",
        "deep quotes": ">" * 31 + "a\n",
        "deeper quotes": "> " * 40 + "a\n",
        "alternating lists": "- a\n+ a\n",
        "alternating numbers": "1. a\n1) a\n",
        "quotes and lists": "- > - > - > - > a\n",
        "staircases": _stairs(15),
        "definitions": "[a]: b\n",
        "definitions with half a title": "[a]: b \"c\n[a]: b 'c\n",
        "half labels": "[a\n\n",
        "tables": "|a|\n|-|\n\n",
        "delimiter rows": "|-|-|-|\n",
        "half tables": "|\n-|\n",
        "open tags": "<a b\n",
        "tags in paragraphs": "a\n<b\n",
        "blocks of HTML": "<div>\n\n",
        "fences": "```\n",
        "fences that are none": "``` `\n",
        "line separators": "\u2028\n",
        "form feeds": "\f\n",
        "carriage returns": "\r",
        "code": "    a\n\n",
    }
    long_lines = {
        "brackets": "[",
        "images": "![",
        "asterisks": "*",
        "angle brackets": "<",
        "quote marks": ">",
        "pipes": "|",
        "backticks": "`",
        "backslashes": "\\",
        "tabs": "\t",
        "NUL": "\0",
        "attributes": "<a b=",
        "quoted attributes": '<a b="',
        "rules that are none": "* ",
        "bullets": "- ",
        "numbers": "1. ",
        "number signs": "# ",
    }
    texts = {name: _filled(unit, size) for name, unit in lines.items()}
    texts |= {name: _filled(unit, size) + "x" for name, unit in long_lines.items()}
    texts |= {
        "a quote with lazy lines": ">" * 31 + "a\n" + _filled("a\n", size),
        "a list with lazy lines": _stairs(15) + _filled("a\n", size),
        "a deep list of paragraphs": _stairs(15) + _filled(" " * 30 + "a\n\n", size),
        "an endless staircase": _stairs(int(size**0.5)),
        "an endless title": '[a]: b "' + _filled("c\n", size),
        "an endless label": "[" + _filled("c\n", size),
        "an endless comment": "<!--\n" + _filled("a\n", size),
        "an endless fence": "```\n" + _filled("``` a\n", size),
        "a wide table": _filled("a|", half) + "\n" + _filled("-|", half),
        "a wide row": "|a|\n|-|\n" + _filled("|", size),
        "a table to fill up": _filled("a|", 1024) + "\n" + _filled("-|", 1024) + "\n" + _filled("a\n", size),
        "spaces after bullets": "- - - " + " " * size + "x",
        "a heading of spaces": "#" + " " * size + "#",
    }
    return texts
