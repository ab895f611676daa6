"""The lanes that a repository adds: `[lifecycle.lanes.NAME]` of its policy, and everything that can be wrong with them.

[lifecycle.lanes.QA]
after = "IN_REVIEW"
before = "MERGE_PENDING"

Such a lane is inserted between two adjacent lanes. The command that used to lead from one to the other now leads to the
added lane, through the same gate, and `advance` leads on from there. An added lane never removes a gate. It cannot come
before IN_PROGRESS, because activation and claim each lead directly to their lane. A table with an error is not in
force, and until it is fixed no packet can move, so that a typo opens nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from workpacket.model.lanes import ACTIVE_TOKEN, BUILT_IN, WAY, AddedLane, LaneTable, section_key, words_of
from workpacket.value import Value

TOKEN: Final = re.compile(r"[A-Z]+(?:_[A-Z]+)*\Z")
TITLE: Final = re.compile(r"[A-Za-z]+(?:[ -][A-Za-z]+)*\Z")
LONGEST: Final = 40
# The steps of the way, and those of them between which there is room.
_STEPS: Final = tuple(pairwise(WAY))
_ROOM: Final = _STEPS[2:]
# Sections of built-in lanes in which work stands that goes on; an added lane may share them.
_SHARED: Final = frozenset({"in progress", "in review"})
_BUILT_IN_HEADINGS: Final = frozenset(words_of(section.key) for section in BUILT_IN.sections)
_SHORT: Final = 3


class LaneFault(Value):
    """What is wrong with a declared lane; `key` is the setting, '' for the lane itself."""

    code: str
    token: str
    key: str
    message: str
    hint: str


def title_of(token: str) -> str:
    """The title of a lane without one: `SECURITY_REVIEW` is `Security Review`, `QA` stays `QA`."""
    return " ".join(word if len(word) <= _SHORT else word.capitalize() for word in token.split("_"))


def added_lanes(declared: Sequence[AddedLane]) -> tuple[LaneTable, tuple[LaneFault, ...]]:
    """The table of the valid lanes, and everything that is wrong with the others."""
    faults = tuple(lane_faults(declared))
    broken = {fault.token for fault in faults}
    by_after = {lane.after: lane for lane in declared if lane.token not in broken}
    added: list[AddedLane] = []
    for start in WAY:
        # Only whole chains count: of one with a fault, no lane leads anywhere.
        chain, lane = [], by_after.get(start)
        while lane is not None and lane not in chain:
            chain.append(lane)
            lane = by_after.get(lane.token)
        if chain and chain[-1].before in WAY:
            added += chain
    return LaneTable(tuple(added)), faults


def lane_faults(declared: Sequence[AddedLane]) -> Iterator[LaneFault]:
    by_token = {lane.token: lane for lane in declared if BUILT_IN.lane(lane.token) is None}
    taken: dict[str, str] = {}
    headings: dict[str, str] = {}
    for lane in declared:
        yield from _name_faults(lane, taken, headings)
        if lane.token not in by_token:
            continue
        neighbours = tuple(_neighbour_faults(lane, by_token))
        yield from neighbours
        if not neighbours:
            yield from _place_faults(lane, declared, by_token)


def _name_faults(lane: AddedLane, taken: dict[str, str], headings: dict[str, str]) -> Iterator[LaneFault]:
    token = lane.token
    if not TOKEN.match(token) or len(token) > LONGEST:
        message = f"{token!r} is not a valid name of a lane"
        hint = f"use up to {LONGEST} capital letters, with _ between words, such as QA or SECURITY_REVIEW"
        yield LaneFault("lane_name_malformed", token, "", message, hint)
    elif BUILT_IN.lane(token) is not None:
        message = f"{token} is a built-in lane, which a policy cannot change"
        yield LaneFault("lane_built_in", token, "", message, "choose another name, or remove the table")
    else:
        yield from _taken(lane, "", token, taken)
    for key, text in (("title", lane.title), ("section", lane.section))[: 1 if lane.section == lane.title else 2]:
        if not TITLE.match(text) or len(text) > LONGEST:
            message = f"the {key} {text!r} of {token} is not a valid name on a board"
            hint = f"use up to {LONGEST} letters, with a space or a hyphen between words"
            yield LaneFault("lane_name_malformed", token, key, message, hint)
    if words_of(lane.title) != words_of(token):
        yield from _taken(lane, "title", lane.title, taken)
    yield from _section_faults(lane, headings)


def _section_faults(lane: AddedLane, headings: dict[str, str]) -> Iterator[LaneFault]:
    """Whether the board has the heading for something else, or would have it in two spellings."""
    words = words_of(lane.section)
    if lane.section == lane.title and words in BUILT_IN.names:
        return  # said of the title
    before = headings.setdefault(words, section_key(lane.section))
    own = words not in _BUILT_IN_HEADINGS or section_key(lane.section) in _SHARED
    if not own or before != section_key(lane.section):
        message = f"the section {lane.section} of the board is not for the lane {lane.token}"
        yield LaneFault("lane_name_taken", lane.token, "section", message, f"write `section = {_quoted(lane.title)}`")


def _taken(lane: AddedLane, key: str, name: str, taken: dict[str, str]) -> Iterator[LaneFault]:
    """Whether the name already means another lane, ignoring case and markup."""
    words = words_of(name)
    others = [other.token for other in BUILT_IN.names.get(words, ())]
    if words == words_of(ACTIVE_TOKEN):
        others = ["the entries of the section Active"]
    if not others and words in taken:
        others = [taken[words]]
    if others:
        message = f"{name} is a name of {' or '.join(others)} already"
        yield LaneFault("lane_name_taken", lane.token, key, message, "choose another name")
    taken.setdefault(words, lane.token)


def _neighbour_faults(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> Iterator[LaneFault]:
    for key, name in (("after", lane.after), ("before", lane.before)):
        if name == lane.token:
            message = f"{lane.token} lies {key} itself"
            yield LaneFault("lane_cycle", lane.token, key, message, "name the lane next to it")
        elif name not in by_token and BUILT_IN.lane(name) is None:
            message = f"{lane.token} lies {key} {name or '(nothing)'}, which is not a lane"
            yield LaneFault("lane_neighbour_unknown", lane.token, key, message, _meant(name, lane.token, by_token))
        elif name not in by_token and name not in WAY:
            message = f"{lane.token} lies {key} {name}, which is not between stub and done"
            hint = f"name two of {', '.join(WAY[2:])}, or an added lane"
            yield LaneFault("lane_unreachable", lane.token, key, message, hint)


def _meant(name: str, token: str, by_token: Mapping[str, AddedLane]) -> str:
    from difflib import get_close_matches  # only a fault needs it, and every command reads the policy

    known = [*WAY[2:], *(other for other in by_token if other != token)]
    close = [*_named_within(name), *get_close_matches(name.upper(), known, n=1)]
    return f"did you mean {close[0]}?" if close else f"name one of {', '.join(known)}"


def _named_within(name: str) -> Iterator[str]:
    """The lanes in order that some of the words name, most words first: READY_FOR_REVIEW holds `for review`."""
    words = words_of(name).split()
    for count in range(len(words), 0, -1):
        for start in range(len(words) - count + 1):
            named = BUILT_IN.names.get(" ".join(words[start : start + count]), ())
            yield from (lane.token for lane in named[:1] if lane.token in WAY)


def _place_faults(
    lane: AddedLane, declared: Sequence[AddedLane], by_token: Mapping[str, AddedLane]
) -> Iterator[LaneFault]:
    token = lane.token
    first = next(other for other in declared if other.after == lane.after)
    if first is not lane:
        message = f"{token} and {first.token} both come after {lane.after}, and work can move to only one of them"
        hint = f"write `after = {_quoted(first.token)}`, and in {first.token} `before = {_quoted(token)}`"
        yield LaneFault("lane_place_taken", token, "after", message, hint)
        return
    start, end = _ends(lane, by_token)
    if start in by_token or end in by_token:
        message = f"{token} is in a cycle of added lanes that no work can reach"
        yield LaneFault("lane_cycle", token, "after", message, f"start the chain after one of {', '.join(WAY[2:-1])}")
    elif start not in WAY or end not in WAY:
        return  # what is wrong is said of the lane beside it
    elif (start, end) in _STEPS and (start, end) not in _ROOM:
        message = f"between {start} and {end} is the gate to {end}; no lane may come in between"
        hint = f"put {token} after one of {', '.join(WAY[2:-1])}, or add a gate or a checklist item instead"
        yield LaneFault("lane_before_gate", token, "after", message, hint)
    elif (start, end) not in _ROOM:
        message = f"{token} should come after {start} and before {end}, which are not adjacent"
        hint = f"{start} is followed by {BUILT_IN.onward(start)}" if start != WAY[-1] else f"{start} is the end"
        yield LaneFault("lane_unreachable", token, "before", message, hint)
    else:
        yield from _one_sided(lane, by_token)


def _ends(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> tuple[str, str]:
    """The lanes around the chain that contains the lane; an added lane if the chain is a cycle."""
    start, end = lane.after, lane.before
    for _ in by_token:
        start = by_token[start].after if start in by_token else start
        end = by_token[end].before if end in by_token else end
    return start, end


def _one_sided(lane: AddedLane, by_token: Mapping[str, AddedLane]) -> Iterator[LaneFault]:
    """Neighbours must name each other, or work could enter a lane that it cannot leave, or never reach it."""
    for key, name, back in (("after", lane.after, "before"), ("before", lane.before, "after")):
        other = by_token.get(name)
        said = getattr(other, back) if other is not None else lane.token
        if other is not None and said != lane.token:
            message = f"{lane.token} lies {key} {name}, but {name} lies {back} {said}"
            hint = f"write `{back} = {_quoted(lane.token)}` in [lifecycle.lanes.{name}]"
            yield LaneFault("lane_unreachable", lane.token, key, message, hint)


def _quoted(name: str) -> str:
    return f'"{name}"'
