"""What is wrong in a justfile that hands arguments on."""

from __future__ import annotations

from workpacket.model.reasons import Reason

REASONS: tuple[Reason, ...] = (
    Reason(
        "just_parameter_pasted",
        "Parameter pasted into a command line",
        "It is replaced before the shell reads the line, so an argument with `$(...)` in it is carried out.",
        'Set `positional-arguments` and hand it on as `"$@"`, or write `{{ quote(name) }}`.',
        "document",
    ),
)
