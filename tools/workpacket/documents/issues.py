"""Issues of other tools, from which `new --from` makes packets: each with a title, a link, a description and its
criteria.

- JSON of GitHub (`gh issue view --json number,title,body,url`) and of GitLab (`glab issue view --output json`)
- beads: one JSON object per line
- Backlog.md: one Markdown file per task, with front matter
- spec-kitty: a work package of a mission
- a Markdown list of tasks: each open item is an issue
"""

from __future__ import annotations

from workpacket.lazy_pattern import lazy_pattern
from workpacket.problem import Location, Problem
from workpacket.text.json_strict import load_json
from workpacket.text.source import DATA, Node, Source
from workpacket.text.yaml_strict import load_yaml
from workpacket.value import Value, replace

_ITEM = lazy_pattern(r"(?P<indent>[ \t]{0,8})[-*+] (?:\[(?P<box>[ xX])\] )?(?:#[0-9]+ )?(?P<text>\S.*)")
_CRITERIA = lazy_pattern(r"(?i)#{1,6} *(acceptance criteria|done when|definition of done)\b")
_COMMENT = lazy_pattern(r"<!--.*?-->")
# A body may be long; a packet says why in a sentence or two.
_LONGEST_WHY = 400


class Issue(Value):
    """`link` identifies the issue permanently: an address, or a path and an id."""

    link: str
    title: str
    why: str = ""
    criteria: tuple[str, ...] = ()
    done: bool = False


def from_json(source: Source) -> list[Issue] | Problem:
    """Read what `gh` or `glab` printed: one issue or several."""
    loaded = load_json(source, DATA)
    if loaded.root is None:
        return loaded.faults[0].at(source.path)
    nodes = loaded.root.items or [loaded.root]
    return _checked(source, [_of_forge(node) for node in nodes])


def from_lines(source: Source) -> list[Issue] | Problem:
    """Read the issues of beads."""
    issues = []
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.strip():
            continue
        loaded = load_json(Source.from_bytes(source.path, line.encode()), DATA)
        if loaded.root is None:
            return loaded.faults[0].at(source.path, number)
        node = loaded.root
        identity = node.string_at("id")
        criteria = _items(node.string_at("acceptance_criteria"))
        closed = node.string_at("status") in {"closed", "tombstone"}
        link = f"{source.path}#{identity}" if identity else ""
        issues.append(Issue(link, node.string_at("title"), _why(node.string_at("description")), criteria, closed))
    return _checked(source, issues)


def from_task(source: Source) -> list[Issue] | Problem:
    """Read a task with front matter: one of Backlog.md or of spec-kitty."""
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
    done = _scalar(node, "status").casefold() in {"done", "archived"} or _scalar(node, "lane") in {"done", "approved"}
    link = f"{source.path}#{identity}" if identity else ""
    return _checked(source, [Issue(link, _scalar(node, "title"), _why(body), _criteria(body), done)])


def from_list(source: Source) -> list[Issue] | Problem:
    """Read a list of tasks. The lines indented below an item are its criteria."""
    found: list[tuple[str, bool, list[str]]] = []
    for line in source.text.splitlines():
        item = _ITEM.match(line)
        if item is None:
            continue
        if item["indent"] and found:
            found[-1][2].append(item["text"].strip())
        elif item["box"]:
            found.append((item["text"].strip(), item["box"] != " ", []))
    return _checked(
        source, [Issue(f"{source.path}#{title}", title, "", tuple(below), done) for title, done, below in found]
    )


def from_text(source: Source) -> list[Issue] | Problem:
    """Read the text of one issue: its first line is the title, its items are the criteria."""
    title, _, body = source.text.strip().partition("\n")
    return _checked(
        source, [Issue(source.path, title.lstrip("# ").strip(), _why(body), _criteria(body) or _items_of(body))]
    )


def _of_forge(node: Node) -> Issue:
    link = node.string_at("url") or node.string_at("web_url")
    body = node.string_at("body") or node.string_at("description")
    done = node.string_at("state").casefold() == "closed"
    return Issue(link, node.string_at("title"), _why(body), _criteria(body), done)


def _checked(source: Source, issues: list[Issue]) -> list[Issue] | Problem:
    """Return the issues.

    Each must have a one-line title and a link; without a link, the next call would create its packet again.
    """
    if not issues:
        return Problem("field_missing", "it contains no issue", Location(source.path))
    for issue in issues:
        for name, said in (("title", issue.title), ("link or id", issue.link)):
            if not said.strip():
                return Problem("field_missing", f"an issue has no {name}", Location(source.path))
    return [replace(issue, title=" ".join(issue.title.split())) for issue in issues]


def _criteria(body: str) -> tuple[str, ...]:
    """Return the items below a criteria heading; if there is no such heading, the items with checkboxes."""
    lines = _COMMENT.sub("", body).splitlines()
    start = next((index for index, line in enumerate(lines) if _CRITERIA.match(line)), None)
    if start is None:
        return tuple(item["text"].strip() for line in lines if (item := _ITEM.match(line)) and item["box"])
    end = next((index for index, line in enumerate(lines[start + 1 :], start + 1) if line.startswith("#")), len(lines))
    return _items("\n".join(lines[start + 1 : end]))


def _items_of(body: str) -> tuple[str, ...]:
    return tuple(item["text"].strip() for line in body.splitlines() if (item := _ITEM.match(line)))


def _items(text: str) -> tuple[str, ...]:
    return _items_of(text) or tuple(line.strip() for line in text.splitlines() if line.strip())


def _why(body: str) -> str:
    """Return the first paragraph, on one line."""
    paragraph: list[str] = []
    for line in _COMMENT.sub("", body).splitlines():
        if line.startswith(("#", "---")) or _ITEM.match(line) or not line.strip():
            if paragraph:
                break
            continue
        paragraph.append(line.strip())
    text = " ".join(paragraph)
    return text if len(text) <= _LONGEST_WHY else f"{text[: _LONGEST_WHY - 1].rstrip()}…"


def _scalar(node: Node, key: str) -> str:
    value = node.get(key)
    return "" if value is None or value.value is None or value.items or value.mapping else str(value.value).strip()
