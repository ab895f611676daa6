"""Stories of time travel that are told on LangGraph's InMemorySaver and on ours, to end in the same way.

Each of STORIES goes back to an older state of a thread whose graph asks a person: in the graph itself, in a subgraph
that starts empty every time, or in one that keeps its own state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import product
from operator import add
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from langgraph_saver.worlds import on, require_sound
from workpacket.runtime.stores.memory import MemoryStore
from workpacket.runtime.stores.sqlite.store import SQLiteStore

THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict):
    said: Annotated[list[str], add]


class Inner(TypedDict):
    said: Annotated[list[str], add]
    kept: Annotated[list[str], add]


def asks(log: list[str], name: str = "ask") -> Any:
    def node(state: Any) -> dict[str, list[str]]:
        log.append(name)
        answer = interrupt(f"{name}: {len(state.get('kept', state['said']))}?")
        return {"said": [f"{name}={answer}"], **({"kept": [answer]} if "kept" in state else {})}

    return node


def notes(log: list[str], name: str) -> Any:
    def node(state: Any) -> dict[str, list[str]]:
        log.append(name)
        return {"said": [name], **({"kept": [name]} if "kept" in state else {})}

    return node


def chain(schema: Any, nodes: dict[str, Any], checkpointer: Any) -> Any:
    builder = StateGraph(schema)
    last = START
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(last, name)
        last = name
    builder.add_edge(last, END)
    return builder.compile(checkpointer=checkpointer)


def inner(log: list[str], checkpointer: Any, name: str = "ask") -> Any:
    return chain(Inner, {"first": notes(log, "first"), name: asks(log, name), "last": notes(log, "last")}, checkpointer)


def flat(log: list[str], saver: Any) -> Any:
    return chain(State, {"begin": notes(log, "begin"), "ask": asks(log), "end": notes(log, "end")}, saver)


def stateless(log: list[str], saver: Any) -> Any:
    return chain(State, {"begin": notes(log, "begin"), "sub": inner(log, None), "end": notes(log, "end")}, saver)


def stateful(log: list[str], saver: Any) -> Any:
    return chain(State, {"begin": notes(log, "begin"), "sub": inner(log, True), "end": notes(log, "end")}, saver)


def nested(log: list[str], saver: Any) -> Any:
    middle = chain(Inner, {"enter": notes(log, "enter"), "deep": inner(log, True)}, True)
    return chain(State, {"begin": notes(log, "begin"), "sub": middle, "end": notes(log, "end")}, saver)


def parallel(log: list[str], saver: Any) -> Any:
    quiet = chain(Inner, {"quiet": notes(log, "quiet"), "still": notes(log, "still")}, True)
    builder = StateGraph(State)
    for name, node in {"begin": notes(log, "begin"), "one": inner(log, True), "two": quiet}.items():
        builder.add_node(name, node)
    builder.add_node("end", notes(log, "end"))
    builder.add_edge(START, "begin")
    for name in ("one", "two"):
        builder.add_edge("begin", name)
        builder.add_edge(name, "end")
    builder.add_edge("end", END)
    return builder.compile(checkpointer=saver)


def looped(log: list[str], saver: Any) -> Any:
    builder = StateGraph(State)
    builder.add_node("sub", inner(log, True))
    builder.add_node("end", notes(log, "end"))
    builder.add_edge(START, "sub")
    builder.add_edge("sub", "end")
    builder.add_conditional_edges("end", lambda state: "sub" if state["said"].count("end") % 2 else END)
    return builder.compile(checkpointer=saver)


GRAPHS = {graph.__name__: graph for graph in (flat, stateless, stateful, nested, parallel, looped)}


class Talk:
    """One thread, and what came of each step that was taken."""

    def __init__(self, graph: Callable[..., Any], saver: Any, way: str, durability: str) -> None:
        self.calls: list[str] = []
        self.graph, self.way, self.durability = graph(self.calls, saver), way, durability
        self.outcome: list[Any] = []

    def ask(self, method: str, *given: Any, **more: Any) -> Any:
        if self.way == "sync":
            return getattr(self.graph, method)(*given, **more)
        return asyncio.run(getattr(self.graph, f"a{method}")(*given, **more))

    def say(self, given: Any, at: Any = None) -> None:
        self.calls.clear()
        made = self.ask("invoke", given, at or THREAD, durability=self.durability)
        asked = [one.value for one in made.pop("__interrupt__", ())]
        self.outcome.append(("say", made, asked, sorted(self.calls)))
        self.look()

    def answer(self, text: str, at: Any = None) -> None:
        self.say(Command(resume=text), at)

    def turn(self, text: str, *answers: str) -> None:
        self.say({"said": [text]})
        for answer in answers:
            self.answer(answer)

    def fork(self, at: Any, values: Any, node: str | None = None) -> Any:
        made = self.ask("update_state", at, values, node)
        self.look()
        return made

    def look(self) -> None:
        """What the thread is now, with the states of its subgraphs."""
        self.outcome.append(seen(self.ask("get_state", THREAD, subgraphs=True)))

    def history(self) -> list[Any]:
        """The newest first."""
        if self.way == "sync":
            return list(self.graph.get_state_history(THREAD))

        async def collected() -> list[Any]:
            return [state async for state in self.graph.aget_state_history(THREAD)]

        return asyncio.run(collected())

    def before(self, node: str, turn: int = 0) -> Any:
        """The oldest state of this turn, or of the latest before, from which this node is next."""
        found = [state for state in reversed(self.history()) if node in state.next]
        return found[min(turn, len(found) - 1)].config if found else self.history()[-1].config


def seen(state: Any) -> Any:
    inside = [(task.name, seen(task.state)) for task in state.tasks if hasattr(task.state, "tasks")]
    asked = sorted(one.value for task in state.tasks for one in task.interrupts)
    return state.values, state.next, asked, inside


def begun(talk: Talk) -> None:
    talk.turn("hello", "old", "old again")
    talk.turn("more", "second", "second again")


def replay_before_the_question(talk: Talk) -> None:
    begun(talk)
    at = talk.before("begin")
    talk.say(None, at)
    talk.answer("new")


def replay_the_step_that_asked(talk: Talk) -> None:
    begun(talk)
    for node in ("ask", "sub", "one"):
        at = talk.before(node)
        talk.say(None, at)
        talk.answer(f"new {node}")


def replay_the_second_turn(talk: Talk) -> None:
    begun(talk)
    for node in ("begin", "sub", "end"):
        talk.say(None, talk.before(node, 1))
        talk.answer("new")


def replay_from_the_very_first(talk: Talk) -> None:
    begun(talk)
    talk.say(None, talk.history()[-1].config)
    talk.answer("new")


def replay_twice_and_then_the_first_branch(talk: Talk) -> None:
    begun(talk)
    at = talk.before("begin")
    talk.say(None, at)
    talk.answer("new")
    branch = talk.history()[0].config
    talk.say(None, at)
    talk.answer("newer")
    talk.say(None, branch)
    talk.turn("and on", "third")


def replay_and_leave_the_question_open(talk: Talk) -> None:
    begun(talk)
    talk.say(None, talk.before("begin"))
    talk.say(None, talk.before("end"))
    talk.say(None, talk.before("begin", 1))
    talk.answer("new")


def fork_before_the_question(talk: Talk) -> None:
    begun(talk)
    for node in ("ask", "sub", "begin"):
        forked = talk.fork(talk.before(node), {"said": [f"forked at {node}"]})
        talk.say(None, forked)
        talk.answer("new")


def fork_twice_from_one_place(talk: Talk) -> None:
    begun(talk)
    at = talk.before("begin")
    for number in range(2):
        talk.say(None, talk.fork(at, {"said": [f"fork {number}"]}))
        talk.turn("on", f"answer {number}")


def replay_what_was_forked(talk: Talk) -> None:
    begun(talk)
    forked = talk.fork(talk.before("begin"), {"said": ["forked"]})
    talk.say(None, forked)
    talk.answer("new")
    talk.say(None, forked)
    talk.answer("newer")
    talk.say(None, talk.history()[1].config)


def copy_what_asked(talk: Talk) -> None:
    begun(talk)
    for node in ("ask", "sub", "end"):
        copied = talk.fork(talk.before(node), None, "__copy__")
        talk.say(None, copied)
        talk.answer("new")


def copy_the_very_first(talk: Talk) -> None:
    begun(talk)
    copied = talk.fork(talk.history()[-1].config, None, "__copy__")
    talk.say(None, copied)
    talk.answer("new")


def copy_the_newest(talk: Talk) -> None:
    talk.turn("hello")
    copied = talk.fork(THREAD, None, "__copy__")
    talk.say(None, copied)
    talk.answer("new")


def answer_the_first_question_after_a_fork(talk: Talk) -> None:
    talk.turn("hello", "old", "old again")
    talk.turn("more")
    open_question = talk.history()[0].config
    talk.say(None, talk.before("begin"))
    talk.answer("new")
    fork_end = talk.history()[0].config
    talk.answer("late", open_question)
    talk.say(None, fork_end)
    talk.turn("on", "third")


def a_new_turn_from_an_old_state(talk: Talk) -> None:
    begun(talk)
    talk.say({"said": ["instead"]}, talk.before("end"))
    talk.answer("new")
    talk.turn("on", "third")


STORIES = (
    replay_before_the_question, replay_the_step_that_asked, replay_the_second_turn, replay_from_the_very_first,
    replay_twice_and_then_the_first_branch, replay_and_leave_the_question_open, fork_before_the_question,
    fork_twice_from_one_place, replay_what_was_forked, copy_what_asked, copy_the_very_first, copy_the_newest,
    answer_the_first_question_after_a_fork, a_new_turn_from_an_old_state,
)  # fmt: skip


class Case(NamedTuple):
    story: Callable[[Talk], None]
    graph: str
    way: str
    durability: str

    def __str__(self) -> str:
        return "-".join([self.story.__name__, *self[1:]])


WAYS, DURABILITIES = ("sync", "async"), ("sync", "exit", "async")
CASES = [Case(*case) for case in product(STORIES, GRAPHS, WAYS, DURABILITIES)]


def require_same_end(case: Case, folder: Path) -> None:
    # Only with "async" does the time that a disk takes decide what is stored first.
    store = SQLiteStore(folder / "runs.db") if case.durability == "async" else MemoryStore()
    told = []
    for saver in (InMemorySaver(), on(store)):
        talk = Talk(GRAPHS[case.graph], saver, case.way, case.durability)
        case.story(talk)
        told.append([*talk.outcome, [(state.metadata["source"], *seen(state)) for state in talk.history()]])
    theirs, ours = told
    assert ours == theirs
    if case.durability == "async":
        require_sound(store)
    store.close()
