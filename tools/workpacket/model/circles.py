"""Cycles of dependencies: between tasks of a batch, packets, or work packages of a mission."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping


def circles(edges: Mapping[str, Collection[str]], roots: Iterable[str]) -> Iterator[list[str]]:
    """Yield each cycle that a dependency closes, starting and ending with the same name. The last two names are the
    dependency that closes it. Names missing from `edges` have no dependencies. The function is not recursive, because
    ten thousand packets may form one chain.
    """
    done: set[str] = set()
    for root in roots:
        path: list[str] = []
        depth: dict[str, int] = {}
        waiting: list[Iterator[str]] = []
        step = root if root not in done else None
        while step is not None or waiting:
            if step is not None:
                done.add(step)
                depth[step] = len(path)
                path.append(step)
                waiting.append(iter(edges.get(step, ())))
            other, step = next(waiting[-1], None), None
            if other is None:
                waiting.pop()
                del depth[path.pop()]
            elif other in depth:
                yield [*path[depth[other] :], other]
            elif other not in done and other in edges:
                step = other
