"""Answers of git that are remembered (tests/git_answers.py) are those that git would give."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import git_answers
from git.scratch import commit, copy_of, git, make_repository
from git_answers import answered
from workpacket.git.run import Answer
from workpacket.problem import WorkpacketError


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The questions that git was asked; nothing is remembered yet."""
    questions: list[tuple[str, ...]] = []
    really_ask = git_answers._ask

    def counting(folder: Path, *arguments: str, **more: object) -> Answer:
        questions.append(arguments)
        return really_ask(folder, *arguments, **more)  # type: ignore[arg-type]  # handed on as they came

    monkeypatch.setattr(git_answers, "_ask", counting)
    monkeypatch.setattr(git_answers, "_answers", {})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return questions


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_repository(tmp_path / "one")
    return tmp_path / "one"


@pytest.mark.parametrize(
    ("question", "stdin"),
    [
        (("ls-tree", "-r", "{id}"), None),
        (("cat-file", "--batch"), "{id}:a\n"),
        (("log", "--format=%H", "{id}", "--", "a"), None),
        (("merge-base", "--is-ancestor", "{id}", "{id}"), None),
        (("rev-parse", "--verify", "{id}^{commit}"), None),
        (("config", "-z", "--get-regexp", "^core"), None),
    ],
)
def test_what_ids_say_is_asked_once_for_all_repositories(
    root: Path, asked: list[tuple[str, ...]], question: tuple[str, ...], stdin: str | None
) -> None:
    identity = commit(root, "first", a="1")
    other = copy_of(root, root.with_name("two"))
    git(other, "gc", "--quiet")
    words = [word.replace("{id}", identity) for word in question]
    request = stdin.replace("{id}", identity).encode() if stdin else None
    first, second = (answered(where, *words, stdin=request) for where in (root, other))
    assert first == second
    assert len(asked) == 1


@pytest.mark.parametrize(
    "question",
    [
        ("rev-parse", "HEAD"),
        ("rev-parse", "--verify", "--quiet", "{short}"),
        ("rev-parse", "--verify", "--quiet", "FETCH_HEAD"),
        ("rev-parse", "--verify", "@{{1}}"),
        ("rev-list", "--since=1.day.ago", "main"),
        ("ls-files", "-z", "--others"),
        ("status", "--porcelain"),
        ("rev-list", "--stdin", "{id}"),
        ("hash-object", "-w", "a"),
        ("diff-tree", "-p", "{id}", "{id}"),
    ],
    ids=" ".join,
)
def test_what_may_change_is_asked_each_time(
    root: Path, asked: list[tuple[str, ...]], question: tuple[str, ...]
) -> None:
    commit(root, "none", a="0")
    identity = commit(root, "first", a="1")
    for _ in range(2):
        answered(root, *(word.format(id=identity, short=identity[:7]) for word in question), check=False)
    assert len(asked) == 2


BY_NAME: list[tuple[tuple[str, ...], str | None]] = [
    (("rev-parse", "--verify", "--quiet", "main^{commit}"), None),
    (("rev-parse", "--verify", "--quiet", "--end-of-options", "other"), None),
    (("log", "--format=%H", "main", "--"), None),
    (("log", "--format=%H", "--"), None),
    (("log", "--all", "--format=%H", "--"), None),
    (("log", "--walk-reflogs", "--format=%H %gD", "main"), None),
    (("rev-list", "other..main"), None),
    (("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/"), None),
    (("cat-file", "--batch"), "main:a\nother:a\n"),
]


@pytest.mark.parametrize(("question", "stdin"), BY_NAME)
def test_what_references_say_is_asked_once_while_they_stay_as_they_are(
    root: Path, asked: list[tuple[str, ...]], question: tuple[str, ...], stdin: str | None
) -> None:
    def said() -> Answer:
        return answered(root, *question, stdin=stdin.encode() if stdin else None, check=False)

    def really() -> Answer:
        return git_answers._ask(root, *question, stdin=stdin.encode() if stdin else None, check=False)

    commit(root, "first", a="1")
    changes = (
        ("branch", "other"),
        ("commit", "--quiet", "--allow-empty", "--message=second"),
        ("branch", "--force", "other", "main"),
        ("pack-refs", "--all"),
        ("checkout", "--quiet", "--detach", "main"),
        ("checkout", "--quiet", "--detach", "main~1"),
        ("update-ref", "refs/heads/main", "main~1"),
        ("branch", "--delete", "--force", "other"),
        ("tag", "other"),
        ("reflog", "expire", "--expire=all", "--all"),
    )
    for change in changes:
        git(root, *change)
        assert said() == said() == really()
    assert len(asked) < 3 * len(changes)


OF_THE_WORK_TREE: list[tuple[str, ...]] = [
    ("--no-literal-pathspecs", "check-ignore", "--quiet", "--", "./kept/file"),
    ("--no-literal-pathspecs", "check-ignore", "--quiet", "--", "./kept"),
    ("log", "--all", "--no-ext-diff", "--no-textconv", "--text", "-p", "-U0", "--format=%H", "--", "a"),
]


@pytest.mark.parametrize("question", OF_THE_WORK_TREE, ids=" ".join)
def test_rules_in_the_work_tree_are_part_of_what_is_asked(
    root: Path, asked: list[tuple[str, ...]], question: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: str, text: str) -> Callable[[], object]:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        return lambda: (root / path).write_text(text)

    monkeypatch.setenv("XDG_CONFIG_HOME", str(root / ".git" / "settings"))
    commit(root, "first", a="int one () {\n 1\n}\n")
    commit(root, "second", a="int one () {\n 2\n}\n", **{"kept/other": ""})
    changes = (
        write(".gitignore", "kept/\n"),
        write(".gitattributes", "a diff=cpp\n"),
        write("kept/.gitignore", "file\n"),
        write(".gitignore", "!kept/\n"),
        write("kept/file", "1"),
        write(".git/settings/git/ignore", "file\n"),
        write(".git/settings/git/attributes", "a -diff\n"),
        write(".git/info/exclude", "file\n"),
        lambda: git(root, "add", "--force", "kept/file"),
        (root / "kept" / "file").unlink,
        (root / "kept" / "file").mkdir,
    )
    for change in changes:
        change()
        told = [answered(root, *question, check=False) for _ in range(2)]
        assert told == [git_answers._ask(root, *question, check=False)] * 2
    assert len(asked) < 3 * len(changes)


MERGE = ("-c", "merge.renames=true", "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")


def test_a_trial_merge_is_asked_once_and_writes_its_objects_again(
    root: Path, asked: list[tuple[str, ...]], tmp_path: Path
) -> None:
    begun = commit(root, "first", a="1\n", b="1\n")
    ours = commit(root, "ours", a="2\n")
    git(root, "checkout", "--quiet", "-b", "other", begun)
    theirs, against = commit(root, "theirs", b="2\n"), commit(root, "against", a="3\n")
    for other in (theirs, against):
        for name in ("one", "another", "third"):
            trial = tmp_path / f"{name} {other}"
            trial.mkdir()
            places = git_answers._trial(root, str(trial))
            made = answered(root, *MERGE, ours, other, environment=places, check=False)
            assert (made.status, "\0a\0" in made.text) == ((1, True) if other == against else (0, False))
            tree = made.text.partition("\0")[0]
            assert git_answers._ask(root, "ls-tree", "-r", tree, environment=places).text.count("\t") == 2
            if name == "another":
                (root / ".gitattributes").write_text(f"c merge=union\n# {other}\n")
    assert [words[0] for words in asked].count("-c") == 4


def test_a_trial_merge_whose_tree_was_there_is_asked_again_where_it_is_not(
    root: Path, asked: list[tuple[str, ...]], tmp_path: Path
) -> None:
    begun = commit(root, "first", a="1\n", d__b="1\n")
    ours = commit(root, "ours", d__b="2\n")
    git(root, "checkout", "--quiet", "-b", "other", begun)
    theirs = commit(root, "theirs", d__c="2\n")
    without = copy_of(root, root.with_name("without"))
    git(root, "merge", "--quiet", ours)
    for where in (root, without):
        (tmp_path / f"trial {where.name}").mkdir()
        places = git_answers._trial(where, str(tmp_path / f"trial {where.name}"))
        made = answered(where, *MERGE, ours, theirs, environment=places).text.partition("\0")[0]
        assert git_answers._ask(where, "ls-tree", "-r", made, environment=places).text.count("\t") == 3
    assert [words[0] for words in asked].count("-c") == 2


def test_a_merge_in_which_a_program_of_ours_may_run_is_not_kept(root: Path, asked: list[tuple[str, ...]]) -> None:
    identity = commit(root, "first", a="1")
    kept = []
    for _ in range(2):
        question = git_answers._question(root, (*MERGE, identity, identity), None, str(root.parent))
        assert question is not None
        kept.append(not git_answers._asks_us(question))
        git(root, "config", "merge.workpacket.driver", "workpacket board merge-driver %O %A %B %P %L")
    assert kept == [True, False]


@pytest.mark.parametrize("name", ["plain", "b@d", "@{-1}"])
def test_the_form_of_a_name_is_asked_once(root: Path, asked: list[tuple[str, ...]], name: str) -> None:
    for _ in range(2):
        answered(root, "check-ref-format", "--branch", name, check=False)
    assert len(asked) == (1 if name == "plain" else 2)


@pytest.mark.parametrize("word", ["1", "absent"])
def test_a_search_in_a_commit_is_asked_once(root: Path, asked: list[tuple[str, ...]], word: str) -> None:
    identity = commit(root, "first", a="1")
    told = [answered(root, "grep", "-a", "-F", "-e", word, identity, "--", "a", check=False) for _ in range(2)]
    assert (told[0] == told[1], told[0].status, len(asked)) == (True, int(word == "absent"), 1)
    for _ in range(2):
        answered(root, "grep", "-F", "--untracked", "-e", "1", "-e", identity, "--", "a", check=False)
    assert len(asked) == 3


def test_work_trees_beside_this_one_have_references_of_their_own(root: Path, asked: list[tuple[str, ...]]) -> None:
    commit(root, "first", a="1")
    git(root, "worktree", "add", "--quiet", "--detach", str(root.with_name("beside")))
    for _ in range(2):
        answered(root, "log", "--all", "--format=%H", "--")
    assert len(asked) == 2


def _remove_object(root: Path, identity: str) -> None:
    (root / ".git" / "objects" / identity[:2] / identity[2:]).unlink()


def _cut_off(root: Path, identity: str) -> None:
    (root / ".git" / "shallow").write_text(f"{identity}\n")


def _borrow(root: Path, identity: str) -> None:
    (root / ".git" / "objects" / "info").mkdir(exist_ok=True)
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{root.with_name('one')}/.git/objects\n")


def _set(root: Path, identity: str) -> None:
    git(root, "config", "core.abbrev", "12")


@pytest.mark.parametrize("change", [_cut_off, _borrow, _set])
def test_another_repository_is_asked_where_something_else_could_matter(
    root: Path, asked: list[tuple[str, ...]], change: Callable[[Path, str], None]
) -> None:
    identity = commit(root, "first", a="1")
    other = copy_of(root, root.with_name("two"))
    change(other, identity)
    assert answered(root, "ls-tree", identity) == answered(other, "ls-tree", identity)
    assert len(asked) == 2


def test_an_object_that_is_gone_is_missed(root: Path, asked: list[tuple[str, ...]]) -> None:
    identity = commit(root, "first", a="1")
    answered(root, "ls-tree", identity)
    _remove_object(root, identity)
    with pytest.raises(WorkpacketError):
        answered(root, "ls-tree", identity)
    assert len(asked) == 2


def test_an_index_with_the_same_entries_says_the_same_and_another_says_its_own(
    root: Path, asked: list[tuple[str, ...]]
) -> None:
    commit(root, "first", a="1", b="2")
    other = copy_of(root, root.with_name("two"))
    deleted = ("diff-index", "--cached", "--no-renames", "--name-only", "HEAD", "--", ".")
    for question in (("ls-files", "-z", "-v"), deleted):
        git(other, "reset", "--quiet", "--hard")
        before = [answered(where, *question).text for where in (root, other)]
        git(other, "rm", "--quiet", "--cached", "a")
        assert before == [answered(root, *question).text] * 2
        assert answered(other, *question).text != before[0]
    assert len(asked) == 4


def test_an_object_of_a_trial_is_written_again(root: Path, asked: list[tuple[str, ...]], tmp_path: Path) -> None:
    identity = commit(root, "first", a="1")
    for name in ("one trial", "another trial"):
        (tmp_path / name).mkdir()
        places = git_answers._trial(root, str(tmp_path / name))
        text = f"tree {git(root, 'rev-parse', 'HEAD^{tree}')}\nparent {identity}\n"
        text += "author x <> 0 +0000\ncommitter x <> 0 +0000\n\ntrial\n"
        question = ("hash-object", "-t", "commit", "-w", "--stdin")
        made = answered(root, *question, stdin=text.encode(), environment=places).text.strip()
        assert answered(root, "rev-list", "--count", made, environment=places).text == "2\n"
    assert len(asked) == 2


def test_a_failure_is_not_remembered(root: Path, asked: list[tuple[str, ...]]) -> None:
    identity = commit(root, "first", a="1")
    for _ in range(2):
        assert answered(root, "cat-file", "blob", identity, check=False).status == 128
    assert len(asked) == 2


def test_another_git_is_asked_and_one_that_is_told_to_look_elsewhere(
    root: Path, asked: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = commit(root, "first", a="1")
    answered(root, "ls-tree", identity)
    with monkeypatch.context() as patch:
        patch.setenv("GIT_DIR", str(root / ".git"))
        answered(root, "ls-tree", identity)
    monkeypatch.setenv("PATH", f"/usr/bin:/bin:{root}")
    answered(root, "ls-tree", identity)
    assert len(asked) == 3
