"""`workpacket trace`: from the requirement to the commit, and what no longer holds on the way."""

from __future__ import annotations

from workpacket.cli.options import Arguments, Command


def run(arguments: Arguments) -> int:
    from workpacket.cli.tracing import trace_packets

    return trace_packets(arguments)


COMMAND = Command(
    "trace",
    "follow packets from requirement to evidence and commit, and find what no longer holds",
    run,
    arguments="[WP_ID|BASE...]",
    description="""
Without an id all packets are followed, and what stands alone is listed: requirements without a packet, packets without
a requirement, criteria without evidence, evidence without a criterion. A link is suspect when what it leads to was
changed since. The end of what a proof printed is shown in the clone where it was run.""",
    examples=("workpacket trace", "workpacket trace WP-1-Parser-v1", "workpacket trace --json"),
)
