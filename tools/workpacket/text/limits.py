"""Limits on the work that one document may cause a reader. The sizes of other files are in `model/layout`.

Exceeding a limit is a fault with a place and a remedy, never a crash. Limits are checked before the work that they
bound: sizes before reading, depth before a tree is built.
"""

from __future__ import annotations

from workpacket.problem import Location, Problem
from workpacket.value import Value

KIB = 1024
MIB = 1024 * KIB

# The maximum length of a path below the repository, in characters.
PATH_LENGTH = 240


class Limits(Value):
    """The limits for one kind: `size` in bytes of UTF-8, `depth` in nested lists and mappings, `nodes` in values of any
    kind.
    """

    size: int
    depth: int = 32
    nodes: int = 20_000

    def size_fault(self, start: int) -> Problem:
        """Return the fault of a text at `start` that exceeds the size limit."""
        return Problem("limit_size", f"more than {self.size:,} bytes of text", Location.span(start, start))

    def depth_fault(self, start: int, end: int) -> Problem:
        """Return the fault of the first bracket, dash or key that opens one level too many."""
        return Problem(
            "limit_depth",
            f"lists and mappings are nested more than {self.depth} levels deep here",
            Location.span(start, end),
        )

    def nodes_fault(self, start: int, end: int) -> Problem:
        """Return the fault of the first value beyond the limit."""
        return Problem("limit_nodes", f"more than {self.nodes:,} values", Location.span(start, end))


MARKDOWN = Limits(size=2 * MIB)
# A YAML, JSON or TOML file, and the front matter of a Markdown file.
DATA = Limits(size=256 * KIB)
# The task board and the traceability registry: one file that names every packet of a repository.
REGISTER = Limits(size=8 * MIB, nodes=500_000)
