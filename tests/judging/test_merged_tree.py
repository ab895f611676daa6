"""What would be merged is judged, and not what a checkout of it shows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from git.scratch import make_repository
from judging.repositories import LINK, PROGRAM, SUBMODULE, Tree, committed, laid_out
from workpacket.shell.judging.merged_tree import HeadDigests, judge_merged

pytestmark = pytest.mark.share(4)

BOARD, POLICY, EVENT = ".GOV/roles_shared/TASK_BOARD.md", ".GOV/policy/policy.toml", ".GOV/log/WP-1-A-v1/a.json"
BASE: Tree = {BOARD: "board\n", POLICY: "policy\n", EVENT: "{}\n", "src/a.py": "a\n"}
COMMIT = "c" * 40
Found = tuple[str, str, str]


class Merge:
    """What is said of a change of the base to another tree, which lies in the work tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, head: Tree, *, base: Tree = BASE, here: Tree | None = None, worktree: bool = False
    ) -> list[Found]:
        repository = committed(self.folder, base, head)
        laid_out(self.folder, head if here is None else here)
        found = judge_merged(repository, "one", worktree=worktree)
        wanted = {"not_committed": "info"} if worktree else {}
        assert all(one.severity == wanted.get(one.code, "error") and one.hint for one in found)
        return [(one.code, one.path, one.message) for one in found]


@pytest.fixture
def merge(tmp_path: Path) -> Merge:
    return Merge(tmp_path / "repository")


def test_what_lies_here_as_it_is_committed_is_judged_in_peace(merge: Merge) -> None:
    assert merge({**BASE, BOARD: "other\n", ".GOV/spec/a b.md": (PROGRAM, "x")}) == []


def test_without_a_commit_there_is_nothing_to_merge(tmp_path: Path) -> None:
    assert judge_merged(make_repository(tmp_path), "main", worktree=False) == []


# --- entries that are no files ---


def test_links_and_submodules_below_the_folder_are_foreign(merge: Merge) -> None:
    found = merge({**BASE, ".GOV/link": (LINK, "../src"), ".GOV/sub": (SUBMODULE, COMMIT)})
    assert found == [
        ("tree_entry_foreign", ".GOV/link", "it is a symbolic link"),
        ("tree_entry_foreign", ".GOV/sub", "it is a submodule"),
    ]


def test_names_of_files_that_a_command_is_about_to_put_in_place_are_foreign(merge: Merge) -> None:
    before = {**BASE, ".GOV/log/.workpacket-old": "x"}
    new = {".GOV/log/.workpacket-x": "x", ".GOV/.workpacket-y/z": "x", ".GOV/log/x.workpacket-y": "x"}
    what = "its name begins with .workpacket-, like that of a file that a command is about to move into place"
    assert merge({**before, **new}, base=before) == [
        ("tree_entry_foreign", ".GOV/.workpacket-y/z", what),
        ("tree_entry_foreign", ".GOV/log/.workpacket-x", what),
    ]


def test_what_the_base_holds_already_is_not_asked_about(merge: Merge) -> None:
    before: Tree = {
        **BASE,
        ".GOV/link": (LINK, "x"),
        ".GOV/sub": (SUBMODULE, COMMIT),
        ".GOV/Policy/a": "a",
        ".gov/b": "b",
    }
    after = {**before, ".GOV/link": (LINK, "y")}
    assert [(code, path) for code, path, _ in merge(after, base=before)] == [
        ("tree_entry_foreign", ".GOV/link"),
        ("path_twin", ".gov"),
    ]


@pytest.mark.parametrize("entry", ["a file", (LINK, "elsewhere"), (SUBMODULE, COMMIT)])
def test_the_folder_itself_is_a_folder(merge: Merge, entry: str | tuple[str, str]) -> None:
    (merge.folder / ".GOV").mkdir(parents=True)
    assert merge({".GOV": entry}, here={}) == [("tree_entry_foreign", ".GOV", "it is not a folder of files")]


def test_a_tree_without_the_folder_has_lost_it_and_is_not_foreign(merge: Merge) -> None:
    assert merge({"src/a.py": "a\n"}, here={}) == []


def test_paths_elsewhere_are_the_affair_of_coverage(merge: Merge) -> None:
    assert merge({**BASE, "src/link": (LINK, "x"), "src/sub": (SUBMODULE, COMMIT), "src/.workpacket-x": "x"}) == []


# --- names that are the same elsewhere ---


@pytest.mark.parametrize("name", [".gov", ".GOV.", "GOV~1", ".G\u200cOV", ".GOV:stream", ".Gov "])
def test_a_second_name_of_the_folder_is_a_twin(merge: Merge, name: str) -> None:
    assert merge({**BASE, f"{name}/x": "x"}, here=BASE) == [
        ("path_twin", name, "on some file systems it is the same as .GOV")
    ]


def test_a_name_that_is_another_everywhere_is_no_twin(merge: Merge) -> None:
    assert merge({**BASE, ".GOVx": "x", ".gov-old/x": "x", "gov": "x", ".GOV/policy/policy.tomlx": "x"}) == []


@pytest.mark.parametrize("path", [".GitAttributes", ".GOV/log/.GITATTRIBUTES", ".GOV/spec/.gitattributes."])
def test_a_second_name_of_an_attribute_file_is_its_twin(merge: Merge, path: str) -> None:
    """Where case does not count git reads it: the same checkout has other bytes there than here."""
    ((code, named, message),) = merge({**BASE, path: "* ident\n", ".GOV/spec/x.md": "x"})
    assert (code, named) == ("path_twin", path)
    assert f"{path.rpartition('/')[0]}/.gitattributes".lstrip("/") in message


@pytest.mark.parametrize(
    ("path", "other"),
    [
        (".GOV/Policy/policy.toml", ".GOV/policy"),
        (".GOV/policy/Policy.toml", POLICY),
        (".GOV/policy/REVOKED_KEYS", ".GOV/policy/revoked_keys"),
        (".GOV/policy/revoked_keys.", ".GOV/policy/revoked_keys"),
        (".GOV/Roles_Shared", ".GOV/roles_shared"),
        (".GOV/log/wp-1-a-v1/b.json", ".GOV/log/WP-1-A-v1"),
    ],
)
def test_a_second_name_of_what_is_read_is_a_twin_of_it(merge: Merge, path: str, other: str) -> None:
    found = merge({**BASE, path: "x"})
    assert found == [("path_twin", path, f"on some file systems, it is the same as {other} or is inside it")]


def test_of_two_new_names_each_is_the_twin_of_the_other(merge: Merge) -> None:
    assert merge({**BASE, ".GOV/spec/a.md": "x", ".GOV/spec/A.md": "x", ".GOV/spec/b.md": "x"}) == [
        ("path_twin", ".GOV/spec/A.md", "on some file systems, it is the same as .GOV/spec/a.md or is inside it"),
        ("path_twin", ".GOV/spec/a.md", "on some file systems, it is the same as .GOV/spec/A.md or is inside it"),
    ]


def test_of_several_names_the_first_is_told(merge: Merge) -> None:
    base = {**BASE, ".GOV/spec/a.md": "x", ".GOV/spec/A.md": "x"}
    found = merge({**base, ".GOV/spec/a.MD": "x"}, base=base)
    assert found == [
        ("path_twin", ".GOV/spec/a.MD", "on some file systems, it is the same as .GOV/spec/A.md or is inside it")
    ]


# --- attributes ---


def converting(path: str, attribute: str) -> list[Found]:
    return [("attribute_converts", path, f"the attribute {attribute} makes a checkout show different bytes")]


@pytest.mark.parametrize(
    ("line", "path", "attribute"),
    [
        ("*.md working-tree-encoding=UTF-16", BOARD, "working-tree-encoding=UTF-16"),
        ("*.toml filter=evil", POLICY, "filter=evil"),
        ("*.json ident", EVENT, "ident"),
        ("*.json text=auto", EVENT, "text=auto"),
        ("*.json crlf", EVENT, "crlf"),
        ("*.json eol=crlf", EVENT, "eol=crlf"),
        ("*.md eol=crlf", BOARD, "eol=crlf"),
        ("*.toml text eol=crlf", POLICY, "eol=crlf"),
        ("* ident", EVENT, "ident"),
        ("*.md filter=x eol=crlf", BOARD, "filter=x"),
    ],
)
def test_attributes_that_show_other_bytes_are_refused_where_bytes_count(
    merge: Merge, line: str, path: str, attribute: str
) -> None:
    """Of all files that are shown otherwise, one is named."""
    assert merge({**BASE, ".gitattributes": f"{line}\n"}) == converting(path, attribute)


@pytest.mark.parametrize(
    "line",
    [
        "*.md text=auto",
        "*.toml text",
        "*.json -text eol=crlf",
        "*.md crlf",
        "*.json eol=lf",
        "*.json -text -ident -filter",
        "src/* ident",
        "*.md diff=x merge=y",
        "*.md diff -linguist-generated gitlab-generated=false",
        "src/* -diff linguist-generated",
    ],
)
def test_attributes_that_leave_the_bytes_or_only_line_ends_are_none_of_these(merge: Merge, line: str) -> None:
    assert merge({**BASE, ".gitattributes": f"{line}\n"}) == []


@pytest.mark.parametrize(
    ("line", "attribute"),
    [
        ("*.json -diff", "diff=unset"),
        ("*.json binary", "diff=unset"),
        ("*.json linguist-generated", "linguist-generated"),
        ("*.json linguist-generated=true", "linguist-generated=true"),
        ("*.json gitlab-generated", "gitlab-generated"),
        ("*.json gitlab-generated=true", "gitlab-generated=true"),
    ],
)
def test_attributes_that_hide_files_from_reviewers_are_refused(merge: Merge, line: str, attribute: str) -> None:
    what = f"the attribute {attribute} keeps it out of the diffs that people review"
    assert merge({**BASE, ".gitattributes": f"{line}\n"}) == [("attribute_hides", EVENT, what)]


def test_what_the_base_hides_is_not_asked_about(merge: Merge) -> None:
    base = {**BASE, ".gitattributes": "*.json -diff\n"}
    assert merge({**base, ".gitattributes": "*.json -diff\n*.py text\n"}, base=base) == []


def test_what_converts_and_what_hides_are_told_one_beside_the_other(merge: Merge) -> None:
    found = merge({**BASE, ".gitattributes": "*.json ident -diff\n"})
    assert [code for code, _, _ in found] == ["attribute_converts", "attribute_hides"]


def test_an_attribute_file_below_the_folder_counts_as_well(merge: Merge) -> None:
    assert merge({**BASE, ".GOV/log/.gitattributes": "* ident\n"}) == converting(".GOV/log/.gitattributes", "ident")


def test_an_attribute_file_elsewhere_or_one_that_is_no_file_does_not(merge: Merge) -> None:
    assert merge({**BASE, "src/.gitattributes": "* ident\n", "x.gitattributes": "* ident\n"}) == []


def test_a_link_of_that_name_is_an_attribute_file(merge: Merge) -> None:
    """Git takes what the link says, and not where it leads, for lines of attributes: also in a fresh clone."""
    assert merge({**BASE, ".gitattributes": (LINK, "*.json ident\n")}) == converting(EVENT, "ident")


def test_a_submodule_of_that_name_is_none(merge: Merge) -> None:
    assert merge({**BASE, ".gitattributes": (SUBMODULE, COMMIT)}) == []


def test_attributes_of_the_base_are_not_asked_about(merge: Merge) -> None:
    base = {**BASE, ".gitattributes": "*.json ident\n*.md filter=old\n"}
    assert merge({**base, ".GOV/log/WP-1-A-v1/b.json": "{}\n"}, base=base) == []


def test_an_attribute_of_the_base_may_not_become_another(merge: Merge) -> None:
    base = {**BASE, ".gitattributes": "*.json ident\n*.md filter=old\n"}
    assert merge({**base, ".gitattributes": "*.json ident\n*.md filter=new\n"}, base=base) == converting(
        BOARD, "filter=new"
    )


def test_attributes_of_what_is_no_file_do_not_matter(merge: Merge) -> None:
    base: Tree = {**BASE, ".GOV/link": (LINK, "x")}
    assert merge({**base, ".gitattributes": ".GOV/link ident\n"}, base=base) == []


# --- what lies here ---


NOT_MERGED = "the version in HEAD is the one that would be merged"


@pytest.mark.parametrize(
    ("here", "path", "what"),
    [
        ({**BASE, BOARD: "other\n"}, BOARD, "its bytes differ from HEAD"),
        ({path: said for path, said in BASE.items() if path != EVENT}, EVENT, "it is in HEAD, but missing here"),
        ({**BASE, ".GOV/x.md": "x"}, ".GOV/x.md", "it is not in HEAD"),
        ({**BASE, POLICY: "policy\r\n"}, POLICY, "its bytes differ from HEAD"),
        ({**BASE, EVENT: "{}\r\n"}, EVENT, "its bytes differ from HEAD"),
    ],
)
@pytest.mark.parametrize("worktree", [False, True])
def test_what_lies_here_otherwise_than_it_is_committed_is_told(
    merge: Merge, here: Tree, path: str, what: str, worktree: bool
) -> None:
    assert merge(BASE, here=here, worktree=worktree) == [("not_committed", path, f"{what}; {NOT_MERGED}")]


def test_a_checkout_may_have_other_line_ends_where_no_digest_is_over_them(merge: Merge) -> None:
    assert merge(BASE, here={**BASE, BOARD: "board\r\n"}) == []


def test_files_elsewhere_and_files_that_are_about_to_be_put_in_place_are_left_out(merge: Merge) -> None:
    assert merge(BASE, here={**BASE, "src/a.py": "b\n", "c.py": "", ".GOV/log/.workpacket-x": ""}) == []


def test_one_file_is_named_for_all_of_them(merge: Merge) -> None:
    found = merge(BASE, here={**BASE, BOARD: "x", ".GOV/z": ""})
    assert found == [
        ("not_committed", BOARD, f"its bytes differ from HEAD; {NOT_MERGED}; and 1 more below .GOV"),
    ]


def test_a_folder_in_the_place_of_a_file_is_not_what_is_committed(merge: Merge) -> None:
    here = {path: said for path, said in BASE.items() if path != BOARD}
    assert merge(BASE, here={**here, f"{BOARD}/x": ""})[0][:2] == ("not_committed", BOARD)


def test_a_link_in_the_place_of_a_file_is_not_what_is_committed(merge: Merge) -> None:
    (merge.folder / "elsewhere").mkdir(parents=True)
    (merge.folder / "elsewhere/board").write_text("board\n")
    link = merge.folder / BOARD
    link.parent.mkdir(parents=True)
    link.symlink_to(merge.folder / "elsewhere/board")
    here = {path: said for path, said in BASE.items() if path != BOARD}
    assert merge(BASE, here=here) == [("not_committed", BOARD, f"its bytes differ from HEAD; {NOT_MERGED}")]


def test_digests_are_of_what_head_holds(merge: Merge) -> None:
    merge({**BASE, BOARD: "other\n"}, here=BASE)
    digest_of = HeadDigests(make_repository(merge.folder))
    assert digest_of(BOARD) == hashlib.sha256(b"other\n").hexdigest()
    assert digest_of(".GOV/none") is None


def test_without_a_commit_there_are_no_digests(tmp_path: Path) -> None:
    assert HeadDigests(make_repository(tmp_path))(BOARD) is None
