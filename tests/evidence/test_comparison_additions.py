"""An error is for want of the change only if it says that something is missing which the change adds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.evidence.comparison import Additions, FileAdditions, PythonFile, additions, names_addition, says_missing

FILES = (
    FileAdditions(
        "src/greet.py", {4: "def ciao(name):", 5: "    return WORDS[name]"}, "def hello(name):\n    return x\n"
    ),
    FileAdditions("src/languages/__init__.py", {}),
    FileAdditions("src/languages/italian.py", {1: "SALVE = 1"}),
    FileAdditions("web/index.js", {1: "exports.bonjour = 1"}),
    FileAdditions("go.mod", {1: "module x"}),
    FileAdditions("src/words.json", {1: "{}"}, "[]"),
    FileAdditions("src/lib.rs", {1: "pub fn hola() {}"}, ""),
)
ADDED = additions(FILES, ["src/languages", "web"])


def test_what_a_change_adds() -> None:
    added = additions(FILES, ["src/languages", "web"])
    assert added == ADDED
    assert {"ciao", "WORDS", "SALVE", "bonjour", "hola"} <= added.words
    assert not {"hello", "name", "return", "def"} & (added.words - {"def"})
    assert added.paths == {
        "src/languages", "web", "src/languages/__init__.py", "src/languages/italian.py", "web/index.js", "go.mod",
    }  # fmt: skip
    assert added.lines == {"src/greet.py": (4, 5), "src/languages/italian.py": (1,)}
    assert added.data == {"src/words.json"}
    assert added.other == {"web/index.js", "go.mod", "src/lib.rs"}


@pytest.mark.parametrize(
    "ending",
    [
        "", ".json", ".yaml", ".yml", ".toml", ".txt", ".md", ".rst", ".csv", ".tsv", ".xml", ".html", ".css", ".svg",
        ".sql", ".ini", ".cfg", ".conf", ".env", ".tmpl", ".j2", ".jinja", ".po", ".sh", ".bash", ".schema",
    ],
)  # fmt: skip
def test_what_is_read_and_not_run_is_data(ending: str) -> None:
    file = FileAdditions(f"a/words{ending}", {1: "ciao!"}, "")
    assert additions((file,)) == Additions(words=frozenset({"ciao"}), data=frozenset({file.path}))


def test_python_is_watched_by_its_lines_and_kept_where_its_text_is_known() -> None:
    files = (
        FileAdditions("a.py", {2: "y", 1: "x"}, None, "x\ny\n"),
        FileAdditions("b.pyi", {1: "z"}, "", ""),
        FileAdditions("c.py", {}, "x", "x"),
    )
    found = additions(files)
    assert found.lines == {"a.py": (1, 2), "b.pyi": (1,)}
    assert found.python == (PythonFile("a.py", "x\ny\n"), PythonFile("c.py", "x", "x"))
    assert (found.paths, found.data, found.other) == (frozenset({"a.py"}), frozenset(), frozenset())


@pytest.mark.parametrize(
    ("message", "named"),
    [
        ("ModuleNotFoundError: No module named 'src.old'", True),
        ("Cannot find module '../src/shop'", True),
        ("error[E0432]: unresolved import `src::wares`", True),
        ("No such file or directory: 'go.mod'", True),
        ("No such file or directory: 'go/mod'", False),
        ("docs/box not found.", True),
        ("No module named 'xray'", True),
        ("No such file or directory: 'web2/a.ciao'", False),
        ("ciao is not 3", False),
        ("ciao! is not defined", False),
        ("no method named ciao founts", False),
        ("no method named ciao found", True),
        ("can't open file 'docs/box'", True),
        ("Cannot find module '../shop'", True),
        ("Cannot find module '../!shop'", False),
        ("No module named '.wares'", True),
        ("No such file or directory: 'docs/.env'", True),
        ("open .env: no such file", True),
        ("No module named (x)", False),
        ("undefined: (x)", False),
        ("not enough arguments in call to (x)", False),
        ("use of undeclared type (x)", False),
        ("No such file or directory: '../go.mod'", True),
    ],
)
def test_a_name_is_that_of_a_file_however_its_language_says_it(message: str, named: bool) -> None:
    new = ("src/old/__init__.py", "src/shop/index.js", "src/wares/mod.rs", "go.mod", "docs/box", "docs/.env", ".env")
    files = [*(FileAdditions(path, {}) for path in new), FileAdditions("src/x.py", {1: "xray ciao"}, "")]
    assert names_addition(message, additions(files)) is named


def test_a_word_that_its_file_had_is_not_added_and_one_that_another_had_is() -> None:
    files = (FileAdditions("a.py", {1: "x = old"}, "old = 1"), FileAdditions("b.py", {1: "y = new"}, "z"))
    assert additions(files).words == {"x", "y", "new"}
    assert additions((FileAdditions("c.py", {1: "old"}, ""), *files)).words == {"x", "y", "new", "old"}


@pytest.mark.parametrize(
    ("added", "measurable"),
    [
        (Additions(), False),
        (Additions(lines={"a.py": (1,)}), True),
        (Additions(lines={"a.py": (1,)}, other=frozenset({"b.c"})), True),
        (Additions(data=frozenset({"a.json"})), True),
        (Additions(data=frozenset({"a.json"}), other=frozenset({"b.c"})), False),
        (Additions(other=frozenset({"b.c"})), False),
    ],
)
def test_where_a_test_has_to_be_seen_to_touch_the_change(added: Additions, measurable: bool) -> None:
    assert added.measurable is measurable


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("src/greet.py", True), ("./src/words.json", True), ("src/lib.rs", True), ("/tmp/tree/src/lib.rs", True),
        ("greet.py", True), ("src/other.py", False), ("greet", False), ("", False), ("git", False),
    ],
)  # fmt: skip
def test_a_program_names_a_changed_file(word: str, named: bool) -> None:
    assert ADDED.names(word) is named


@pytest.mark.parametrize(
    "message",
    [
        "ModuleNotFoundError: No module named 'src.languages'",
        "ModuleNotFoundError: No module named 'src.languages.italian'",
        "ModuleNotFoundError: No module named 'languages.italian'",
        "ModuleNotFoundError: No module named 'italian'",
        "ModuleNotFoundError: No module named 'web'",
        "ImportError: cannot import name 'ciao' from 'src.greet' (/tmp/src/greet.py)",
        "AttributeError: module 'src.greet' has no attribute 'ciao'",
        "AttributeError: <module 'src.greet'> does not have the attribute 'ciao'",
        "NameError: name 'WORDS' is not defined",
        "E  fixture 'ciao' not found",
        "TypeError: hello() got an unexpected keyword argument 'ciao'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'src/languages/italian.py'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/tree/src/languages/italian.py'",
        "python: can't open file '/tmp/tree/src/languages/italian.py': [Errno 2] No such file or directory",
        "./greet_test.go:6:5: undefined: ciao",
        "./greet_test.go:6:5: undefined: greet.ciao",
        "x.ciao undefined (type X has no field or method ciao)",
        "unknown field ciao in struct literal",
        "no required module provides package example.org/x/web; to add it:",
        "greet_test.go:3:8: package example.org/web is not in std",
        'cannot find package "example.org/web" in any of',
        "./a_test.go:6: too many arguments in call to ciao",
        "./a_test.go:6: not enough arguments in call to greet.ciao",
        "go: go.mod file not found in current directory or any parent directory",
        "error[E0432]: unresolved import `greet::hola`",
        "error[E0425]: cannot find function `hola` in this scope",
        "error[E0433]: failed to resolve: could not find `hola` in `greet`",
        "error[E0599]: no method named `hola` found for struct `X`",
        "error[E0599]: no function or associated item named `hola` found",
        "error[E0609]: no field `hola` on type `X`",
        "error[E0433]: failed to resolve: use of undeclared type `hola`",
        "error[E0433]: use of unresolved module or unlinked crate `hola`",
        "error[E0583]: file not found for module `italian`",
        "Cannot find module '../web/index' from 'tests/a.test.js'",
        "Cannot find module '../web/index.js' from 'tests/a.test.js'",
        "Cannot find module '../../web' from 'tests/x/a.test.js'",
        "TS2304: Cannot find name 'bonjour'.",
        "Module '\"./x\"' has no exported member 'bonjour'.",
        "Property 'bonjour' does not exist on type 'X'.",
        "The requested module './x.js' does not provide an export named 'bonjour'",
        "TypeError: bonjour is not a function",
        "TypeError: x.bonjour is not a constructor",
        "ReferenceError: bonjour is not defined",
        "error: could not find `web/index.js` in `/tmp/x` or any parent directory",
        "cat: web/index.js: No such file or directory",
        "cannot open web/index.js",
        "npm error enoent Could not read web/index.js",
        "either src/main.rs, web/index.js, a [lib] section must be present",
        "sh: 0: can not open web/index.js:",
    ],
)
def test_an_error_for_want_of_the_change(message: str) -> None:
    assert names_addition(message, ADDED)
    assert names_addition(f"something else\n{message}\nand more", ADDED)
    assert not names_addition(message, additions(()))


@pytest.mark.parametrize(
    "message",
    [
        "",
        "SyntaxError: invalid syntax (italian.py, line 1)",
        "SyntaxError: invalid syntax in ciao",
        "ModuleNotFoundError: No module named 'yaml'",
        "ModuleNotFoundError: No module named 'src.greet'",
        "ModuleNotFoundError: No module named 'other.italian.q'",
        "ImportError: cannot import name 'hello' from 'ciao'",
        "AttributeError: 'ciao' object has no attribute 'strip'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'src/other.py'",
        "FileNotFoundError: [Errno 2] No such file or directory: '.'",
        "FileNotFoundError: [Errno 2] No such file or directory: ''",
        "src/languages/italian.py is there",
        "ciao failed",
        "ConnectionError: ciao",
    ],
)
def test_an_error_for_another_reason(message: str) -> None:
    assert not names_addition(message, ADDED)


def test_names_beside_do_not_count() -> None:
    message = "sh: 0: cannot open web/index.js: No such file"
    assert names_addition(message, ADDED)
    assert not names_addition(message, ADDED, ["sh", "web/index.js"])


@pytest.mark.parametrize(
    ("message", "missing"),
    [
        ("ModuleNotFoundError: No module named 'x'", True),
        ("ImportError: x", True),
        ("FileNotFoundError: x", True),
        ("NotADirectoryError: x", True),
        ("SyntaxError: x", True),
        ("IndentationError: x", True),
        ("TabError: x", True),
        ("Error: Cannot find module 'x'", True),
        ("sh: x: command not found", True),
        ("cat: x: no such file or directory", True),
        ("cat: x: No such file or directory", True),
        ("python: can't open file 'x'", True),
        ("python: can't open filing cabinet", False),
        ("AssertionError: No such file or directory", False),
        ("Failed: DID NOT RAISE ImportError", False),
        ("ValueError: bad", False),
        ("MyImportErrors: x", False),
        ("AttributeError: 'NoneType' object has no attribute 'x'", False),
        ("", False),
    ],
)
def test_what_says_that_something_is_missing(message: str, missing: bool) -> None:
    assert says_missing(message) is missing


@given(st.text(), st.text())
def test_no_message_makes_it_fail(message: str, path: str) -> None:
    names_addition(message, additions((FileAdditions(path, {1: message}),)))
