"""Issues from other tools, from which `new --from` makes packets: each with a title, a link, a description and its
criteria.

- JSON from GitHub (`gh issue view --json number,title,body,url`) and from GitLab (`glab issue view --output json`)
- beads: one JSON object per line
- Backlog.md: one Markdown file per task, with front matter
- spec-kitty: a work package of a mission
- a Markdown list of tasks: each open item is an issue
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workpacket.lazy_pattern import lazy_pattern
from workpacket.model.layout import LARGEST_FILE
from workpacket.problem import Location, Problem
from workpacket.text.json_strict import load_json
from workpacket.text.source import Limits, Node, Source
from workpacket.text.yaml_strict import load_yaml
from workpacket.value import Value, replace

_ITEM = lazy_pattern(
    r"(?P<indent>[ \t]{0,8})(?:[-*+]|[0-9]{1,3}[.)]) (?:\[(?P<box>[ xX])\] )?(?:#[0-9]+ )?(?P<text>\S.*)"
)
_CRITERIA = lazy_pattern(
    r"(?i)(?:#{1,6} |\*\*)[^#\n]{0,30}\b(acceptance criteria|success criteria|done when|definition of done)\b"
)
_REASON = lazy_pattern(r"(?i)#{1,6} *(description|objectives?|goal|why|summary|motivation)\b")
_LABEL = lazy_pattern(r"\*\*[^*\n]{1,40}(?::\*\*|\*\*:) *(?=\S)")
_COMMENT = lazy_pattern(r"<!--.*?-->")
_FENCE = lazy_pattern(r" {0,3}(?:```|~~~)")
_EMPHASIS = lazy_pattern(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_LINK = lazy_pattern(r"!?\[([^\]\n]+)\]\([^)\s]*\)")
# What programs write for a terminal: colors, and other control characters.
_TERMINAL = lazy_pattern(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# Work that a tool considers finished, by its state or lane.
_ENDED = frozenset({"done", "archived", "closed", "tombstone", "approved", "canceled", "cancelled"})
# An export holds all issues of a repository, with their texts.
EXPORT = Limits(size=LARGEST_FILE, nodes=5_000_000)
# A body may be long; a packet says why in a sentence or two.
_LONGEST_WHY = 400


class Issue(Value):
    """`link` is an address, or a path and an id; `identity_of` determines which links refer to the same issue. `after`
    are the identities of the issues that must be done first.
    """

    link: str
    title: str
    why: str = ""
    criteria: tuple[str, ...] = ()
    done: bool = False
    scope: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


def identity_of(link: str) -> str:
    """Return the part that stays the same when a task's file is renamed or moved to the folder of another lane, or when
    a forge spells the address differently.
    """
    path, _, identity = link.rpartition("#")
    name = path.rpartition("/")[2]
    if path.endswith(".md") and identity and name.casefold().startswith(identity.casefold()):
        return _task_identity(path, identity)
    return link.casefold().replace("/-/work_items/", "/-/issues/")


def _task_identity(path: str, identity: str) -> str:
    root, tasks, _ = f"/{path}".rpartition("/tasks/")
    folder = root if tasks else f"/{path}".rpartition("/")[0]
    return f"{folder[1:]}#{identity}".casefold()


def from_json(source: Source) -> list[Issue] | Problem:
    """Read the output of `gh` or `glab`: one issue or several."""
    loaded = load_json(source, EXPORT)
    if loaded.root is None:
        return loaded.faults[0].at(source.path)
    nodes = loaded.root.items or [loaded.root]
    # GitHub lists pull requests as issues.
    return _checked(source, [_of_forge(node) for node in nodes if node.get("pull_request") is None])


def from_lines(source: Source) -> list[Issue] | Problem:
    """Read issues from beads."""
    issues = []
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.strip():
            continue
        loaded = load_json(Source.from_bytes(source.path, line.encode()), EXPORT)
        if loaded.root is None:
            return loaded.faults[0].at(source.path, number)
        node = loaded.root
        identity = node.string_at("id")
        criteria = _items(node.string_at("acceptance_criteria"))
        after = (
            f"{source.path}#{one.string_at('depends_on_id')}".casefold()
            for one in node.items_at("dependencies")
            if one.string_at("type") == "blocks"
        )
        link = f"{source.path}#{identity}" if identity else ""
        # What is pinned is kept in mind, not done.
        why, ended = _why(node.string_at("description")), node.string_at("status") in {*_ENDED, "pinned"}
        issues.append(Issue(link, node.string_at("title"), why, criteria, ended, after=tuple(after)))
    return _checked(source, issues)


def is_task(text: str) -> bool:
    """Whether the front matter has an id and a title. Other files, such as reviews of tasks, may be next to the
    tasks."""
    keys = {line.partition(":")[0] for line in text.partition("\n---\n")[0].splitlines()}
    return text.startswith("---\n") and "title" in keys and not keys.isdisjoint({"id", "work_package_id"})


def lanes_of_mission(source: Source) -> dict[str, str] | Problem:
    """Return the lane of each work package, from the `status.json` of a spec-kitty mission."""
    loaded = load_json(source, EXPORT)
    if loaded.root is None:
        return loaded.faults[0].at(source.path)
    packages = loaded.root.get("work_packages")
    return {name: node.string_at("lane") for name, node in packages.mapping.items()} if packages is not None else {}


def from_task(source: Source, lanes: Mapping[str, str] | None = None) -> list[Issue] | Problem:
    """Read a task with front matter, from Backlog.md or spec-kitty. `lanes` take precedence over what its text or
    folder says."""
    head, separator, body = source.text.removeprefix("---\n").partition("\n---\n")
    if not separator or not source.text.startswith("---\n"):
        return Problem(
            "field_missing", "a task must begin with front matter that gives its id", Location(source.path, 1, 1)
        )
    loaded = load_yaml(Source.from_bytes(source.path, head.encode()))
    if loaded.root is None:
        return loaded.faults[0].at(source.path)
    node = loaded.root
    identity = _scalar(node, "id") or _scalar(node, "work_package_id")
    lane = (lanes or {}).get(identity) or _scalar(node, "status") or _scalar(node, "lane")
    ended = (lane or source.path.split("/")[-2:][0]).casefold() in _ENDED
    after = tuple(_task_identity(source.path, one) for one in _texts(node, "dependencies"))
    scope = tuple(path.removesuffix("**") for path in _texts(node, "owned_files"))
    link = f"{source.path}#{identity}" if identity else ""
    return _checked(source, [Issue(link, _scalar(node, "title"), _why(body), _criteria(body), ended, scope, after)])


def from_list(source: Source) -> list[Issue] | Problem:
    """Read a list of tasks. The items indented below an item are its criteria, and other indented text its reason."""
    found: list[tuple[str, bool, list[str], list[str]]] = []
    for line in _outside_code(source.text):
        item = _ITEM.match(line)
        if item is None:
            if found and (line.startswith((" ", "\t")) or not line.strip()):
                found[-1][3].append(line.strip())
        elif item["indent"] and found:
            found[-1][2].append(item["text"].strip())
        elif item["box"]:
            title = item["text"].strip()
            struck = len(title) > 4 and title.startswith("~~") and title.endswith("~~")
            found.append((title, item["box"] != " " or struck, [], []))
    return _checked(
        source,
        [
            Issue(f"{source.path}#{title}", title, _why("\n".join(text)), tuple(below), done)
            for title, done, below, text in found
        ],
    )


def _outside_code(text: str) -> Iterator[str]:
    inside = False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield line


def from_text(source: Source) -> list[Issue] | Problem:
    """Read the text of one issue: its first line is the title, and its items are the criteria."""
    title, _, body = source.text.strip().partition("\n")
    return _checked(
        source, [Issue(source.path, title.lstrip("# ").strip(), _why(body), _criteria(body) or _items_of(body))]
    )


def _of_forge(node: Node) -> Issue:
    # `url` is the address of the API in GitHub's own JSON, and the page in that of `gh`.
    link = node.string_at("html_url") or node.string_at("web_url") or node.string_at("url")
    body = node.string_at("body") or node.string_at("description")
    done = node.string_at("state").casefold() in _ENDED
    return Issue(link, node.string_at("title"), _why(body), _criteria(body), done)


def _checked(source: Source, issues: list[Issue]) -> list[Issue] | Problem:
    """Return the issues.

    Each must have a one-line title and a link; without a link, the next call would create its packet again.
    """
    if not issues:
        return Problem("field_missing", "it contains no issues", Location(source.path))
    for issue in issues:
        for name, said in (("title", issue.title), ("link or id", issue.link)):
            if not said.strip():
                return Problem("field_missing", f"an issue has no {name}", Location(source.path))
    return [replace(issue, title=_plain(issue.title)) for issue in issues]


def _plain(text: str) -> str:
    """Return one line of text, without emphasis, links or terminal control sequences."""
    text = _LINK.sub(r"\1", _EMPHASIS.sub(r"\2", _TERMINAL.sub("", text)))
    return " ".join(text.split())


def _criteria(body: str) -> tuple[str, ...]:
    """Return the items below a criteria heading; if there is no such heading, the items with checkboxes."""
    lines = [*_outside_code(_TERMINAL.sub("", _COMMENT.sub("", body)))]
    start = next((index for index, line in enumerate(lines) if _CRITERIA.match(line)), None)
    if start is None:
        return tuple(item["text"].strip() for line in lines if (item := _ITEM.match(line)) and item["box"])
    end = next((index for index, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("#")), len(lines))
    return _items("\n".join(lines[start + 1 : end]))


def _items_of(body: str) -> tuple[str, ...]:
    return tuple(item["text"].strip() for line in _outside_code(_TERMINAL.sub("", body)) if (item := _ITEM.match(line)))


def _items(text: str) -> tuple[str, ...]:
    return _items_of(text) or tuple(line.strip() for line in text.splitlines() if line.strip())


def _why(body: str) -> str:
    """Return the first paragraph, on one line; if there is a heading for reasons, the first paragraph below it."""
    lines = [*_outside_code(_TERMINAL.sub("", _COMMENT.sub("", body)))]
    start = next((index for index, line in enumerate(lines) if _REASON.match(line)), 0)
    text = _paragraph(lines[start:]) or _paragraph(lines)
    text = " ".join(_LABEL.sub("", text).split())
    return text if len(text) <= _LONGEST_WHY else f"{text[: _LONGEST_WHY - 1].rstrip()}…"


def _paragraph(lines: Sequence[str]) -> str:
    found: list[str] = []
    for line in lines:
        if line.startswith(("#", "---", ">")) or _ITEM.match(line) or not line.strip():
            if found:
                break
            continue
        found.append(line.strip())
    return " ".join(found)


def _texts(node: Node, key: str) -> tuple[str, ...]:
    return tuple(str(item.value).strip() for item in node.items_at(key) if isinstance(item.value, str | int))


def _scalar(node: Node, key: str) -> str:
    value = node.get(key)
    return "" if value is None or value.value is None or value.items or value.mapping else str(value.value).strip()
