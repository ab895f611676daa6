"""Which runner a command starts, how it is made to report, and which commands prove nothing."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workpacket.evidence.runners import Started, instrumented, is_trivial, junit_files, started

PROBE = "/tmp/probe"


@pytest.mark.parametrize(
    ("command", "runner", "at"),
    [
        ("pytest -q", "pytest", 0),
        ("py.test", "pytest", 0),
        (".venv/bin/pytest tests", "pytest", 0),
        ("python -m pytest tests", "pytest", 2),
        ("python3.11 -X dev -m py.test", "pytest", 4),
        ("pypy3 -m pytest", "pytest", 2),
        ("uv run pytest", "pytest", 2),
        ("poetry run python -m pytest", "pytest", 4),
        ("env -i A=b LANG=C pytest", "pytest", 4),
        ("env -u HOME pytest", "pytest", 3),
        ("nice -n 5 timeout 60 pytest", "pytest", 5),
        ("timeout -s KILL 60 pytest", "pytest", 4),
        ("coverage run -m pytest", "pytest", 3),
        ("python -m coverage run --branch -m pytest", "pytest", 6),
        ("coverage report", "", 0),
        ("coverage run build.py", "", 1),
        ("make run -m pytest", "", 0),
        ("make jest", "", 0),
        ("env -c python -m pytest", "pytest", 4),
        ("python build.py pytest now", "", 0),
        ("python build.py unittest now", "", 0),
        ("python -m unittest discover", "unittest", 2),
        ("python -m coverage run -m unittest", "unittest", 5),
        ("python build.py -m pytest", "pytest", 3),
        ("python -c pass -m pytest", "", 0),
        ("python -m build -m pytest", "", 0),
        ("python -m", "", 0),
        ("go test ./...", "go", 1),
        ("go -C sub test", "go", 3),
        ("go build", "", 0),
        ("cargo +nightly test --all", "cargo", 2),
        ("cargo build", "", 0),
        ("jest tests", "jest", 0),
        ("npx jest", "jest", 1),
        ("npx --yes jest", "jest", 2),
        ("bunx jest", "jest", 1),
        ("pnpx jest", "jest", 1),
        ("npx mocha", "", 0),
        ("npm test", "", 0),
        ("sh -c pytest", "", 0),
        ("hatch version", "", 0),
        ("env", "", 0),
        ("timeout 60", "", 2),
        ("nice -n", "", 3),
    ],
)
def test_what_a_command_starts(command: str, runner: str, at: int) -> None:
    found = started(shlex.split(command))
    assert (found.runner, found.at) == (runner, at)


def test_no_words_start_nothing() -> None:
    assert started([]) == Started("", 0)
    assert started(["uv", "run"]) == Started("", 2)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("pytest -q", "pytest -q"),
        ("python -m unittest tests", "python -m workpacket_probe tests"),
        ("go test ./...", "go test -json ./..."),
        ("go test -json ./...", "go test -json ./..."),
        ("cargo test", "cargo test"),
        ("npx jest a", "npx jest a --json --outputFile=/tmp/out.json"),
        ("env PYTHONPATH=src pytest", "env PYTHONPATH=/tmp/probe:src pytest"),
        ("sh -c 'PYTHONPATH=. pytest; X_PYTHONPATH=1 a'", "sh -c 'PYTHONPATH=/tmp/probe:. pytest; X_PYTHONPATH=1 a'"),
        ("make", "make"),
        ("sh -c 'echo $PYTHONPATH; pytest'", "sh -c 'echo $PYTHONPATH; pytest'"),
        ("env -u PYTEST_ADDOPTS pytest", "env -u PYTEST_ADDOPTS pytest"),
    ],
)
def test_a_command_is_made_to_report(command: str, told: str) -> None:
    assert instrumented(shlex.split(command), PROBE, "/tmp/out.json") == shlex.split(told)


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("pytest --junitxml=a.xml", ["a.xml"]),
        ("ctest --output-junit a.xml --verbose", ["a.xml"]),
        ("phpunit --log-junit a.xml", ["a.xml"]),
        ("gotestsum --junitfile a.xml", ["a.xml"]),
        ("sh -c 'cd x && pytest --junit-xml=b.xml; x --xunit-file c.xml'", ["b.xml", "c.xml"]),
        ("sh -c 'pytest --junitxml=a@b.xml'", ["a@b.xml"]),
        ("sh -c 'x --junitxml A=b.xml'", ["A=b.xml"]),
        ("pytest --junitxml", []),
        ("pytest junitxml=a.xml", []),
    ],
)
def test_the_report_that_a_command_names(command: str, files: list[str]) -> None:
    assert junit_files(shlex.split(command)) == files


@pytest.mark.parametrize(
    "command",
    [
        "true", "/bin/true", "echo 3 passed", "test -f src/x", "[ -f x ]", "ls src", "sh -c :", "sh -c ''", "sh -c",
        "bash -ec", "sh -c 'exit 0'", "sh -c 'A=b true && echo x; ls | wc -l'", "env true", "env A=b", "nohup sleep 1",
        "timeout 9 true", "nice -n 5 env A=b true", "uv run true", "python -c pass", "python -c ''", "python --version",
        "pytest --version", "cargo -V", "sh -c 'true\necho x'", "exec true", "stdbuf true",
        "python -c pass x", "sh -c true make", "sh -c \"'true' x\"",
    ],
)  # fmt: skip
def test_what_proves_nothing(command: str) -> None:
    assert is_trivial(shlex.split(command))


@pytest.mark.parametrize(
    "command",
    [
        "pytest", "python -c 'import x; x.f()'", "python", "sh tests/check.sh", "sh -c 'true; pytest'", "make test",
        "sh -c 'cd x && make'", "grep -q Ciao src/it.txt", "env A=b pytest", "sh -c \"python -m pytest || true\"",
        "pytest tests --version-file x", "sh -c 'it is \"open'", "python -m compileall src",
        "sh -c 'true || make'", "sh -c 'true | make'", "sh -c 'true & make'", "sh -c 'true\nmake'", "node -c ''",
        "python build.py pass",
    ],
)  # fmt: skip
def test_what_may_prove_something(command: str) -> None:
    assert not is_trivial(shlex.split(command))


@given(st.lists(st.text(max_size=8), max_size=6))
def test_no_words_make_it_fail(words: list[str]) -> None:
    started(words)
    is_trivial(words)
    junit_files(words)
    instrumented(words, PROBE, "x")


@pytest.mark.parametrize(
    "word",
    [
        "true", "false", ":", "echo", "printf", "test", "[", "[[", "ls", "stat", "cat", "head", "tail", "wc", "file",
        "exit", "sleep", "pwd", "cd", "date", "which", "type", "command", "touch", "mkdir", "cp", "mv", "rm", "yes",
        "seq", "env", "uname", "whoami", "hostname", "basename", "dirname", "realpath", "readlink", "set", "export",
        "wait", "tee",
    ],
)  # fmt: skip
def test_programs_that_look_at_nothing_prove_nothing(word: str) -> None:
    assert is_trivial([word])
    assert is_trivial(["sh", "-c", f"{word} ; {word}"])
    assert not is_trivial([f"{word}x"])


@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh", "ksh", "busybox"])
def test_the_script_of_a_shell_is_what_is_run(shell: str) -> None:
    assert is_trivial([shell, "-c", "true"])
    assert not is_trivial([shell, "-c", "make"])


@pytest.mark.parametrize(
    "starter",
    ["env", "nohup", "nice", "nice -n 5", "time", "exec", "command", "timeout 9", "timeout -k 5 9", "stdbuf",
     "env -C x", "env -S x", "env -u X", "timeout -s 9 9",
     "uv run", "poetry run", "pipenv run", "pdm run", "hatch run", "rye run"],
)  # fmt: skip
def test_what_another_program_starts_is_found(starter: str) -> None:
    words = starter.split()
    assert started([*words, "pytest", "tests"]) == Started("pytest", len(words))
    assert is_trivial([*words, "true"])


@pytest.mark.parametrize("option", ["--version", "-V", "--help", "-h"])
def test_a_program_that_speaks_of_itself_proves_nothing(option: str) -> None:
    assert is_trivial(["pytest", option])
    assert not is_trivial(["pytest", "tests", option])


@pytest.mark.parametrize(
    "option",
    ["--junitxml", "--junit-xml", "--output-junit", "--log-junit", "--junitfile", "--junit", "--junit-output",
     "--xunit-file"],
)  # fmt: skip
def test_each_option_for_a_report_is_known(option: str) -> None:
    assert junit_files(["x", option, "a.xml"]) == junit_files(["x", f"{option}=a.xml"]) == ["a.xml"]


def test_options_of_pytest_in_a_command_keep_our_plugin() -> None:
    words = ["env", "PYTEST_ADDOPTS=-q", "pytest"]
    assert instrumented(words, "p", "x")[1] == "PYTEST_ADDOPTS=-p workpacket_probe.for_pytest -q"
    assert instrumented(["env", "MY_PYTEST_ADDOPTS=-q", "pytest"], "p", "x")[1] == "MY_PYTEST_ADDOPTS=-q"
