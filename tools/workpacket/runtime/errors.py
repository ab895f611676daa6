"""The exceptions of the runtime. Each code is a stop reason, which determines the exit status and the remedies."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping

from workpacket.model.canonical import Json
from workpacket.model.reasons import StopReason
from workpacket.problem import WorkpacketError


class RuntimeFault(WorkpacketError):
    """Base class of all exceptions below; `details` are the facts of the case, for --json and reports."""

    default_code = "unregistered"

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", details: Mapping[str, Json] | None = None
    ) -> None:
        super().__init__(code or self.default_code, message, hint=hint)
        self.details: Mapping[str, Json] = details or {}
        self.run = str(self.details.get("run") or self.details.get("stream") or "")
        self._notes: list[str] = []

    @property
    def hint(self) -> str:
        """Return the command or call that resolves the problem for this run; without one of its own, the usual remedy
        for the code.
        """
        return self.problem.hint or usual_remedy(self.code, self.run)

    @property
    def way_out(self) -> str:
        return self.hint

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        """Return what Python prints below the message if the error is not caught."""
        if not self._notes:
            then = own_start() if self.run else ""
            self._notes.append(f"({self.code}) -> {self.way_out.rstrip('.')}{f'; then: {then}' if then else ''}")
        return self._notes


def own_start() -> str:
    """Return how this program was started, without its arguments, which may be secret; '' unless it is a script of its
    own.
    """
    words = sys.orig_argv[:3]
    if len(words) < 2 or words[1].startswith("-") or os.path.basename(words[1]) == "workpacket":
        return ""
    return f"python {shlex.quote(words[1])}{' ARGUMENTS' if len(words) > 2 else ''}"


def title_of(code: str) -> str:
    """Return the title of a stop reason, or the code itself if it is not registered."""
    reason = _reason(code)
    return reason.title if reason is not None else code


def _reason(code: str) -> StopReason | None:
    from workpacket.model.reason_tables.stops import REASONS  # a program that is never stopped need not load them

    return next((reason for reason in REASONS if code in {reason.code, *reason.aliases}), None)


def usual_remedy(code: str, run: str = "") -> str:
    """Return the first remedy of a stop reason, with the run's id filled in. A program may stop with a code of its own,
    whose remedy is that of an unregistered code.
    """
    reason = _reason(code) or _reason("unregistered")
    found = reason.remedy if reason is not None else ""
    return re.sub(r"\bRUN\b", lambda _: shlex.quote(run), found) if run else found


class LogDamaged(RuntimeFault):
    default_code = "log_damaged"

    def __init__(self, stream: str, version: int, why: str) -> None:
        super().__init__(f"{stream}, version {version}: {why}", details={"stream": stream, "version": version})


class StoreCorrupt(RuntimeFault):
    default_code = "store_corrupt"


class StoreRolledBack(RuntimeFault):
    default_code = "store_rolled_back"


class StorageFailed(RuntimeFault):
    default_code = "storage_failed"


class StoreUnavailable(RuntimeFault):
    """Nothing was written; the code says what is missing (disk_full, store_busy, store_read_only)."""


class NewerSchema(RuntimeFault):
    default_code = "newer_schema"


class LeaseLost(RuntimeFault):
    default_code = "lease_lost"


class VersionConflict(RuntimeFault):
    """Another writer appended first; nothing was written."""

    default_code = "run_busy"


class WriterConflict(RuntimeFault):
    default_code = "writer_conflict"


class KeyConflict(RuntimeFault):
    default_code = "key_conflict"


class PayloadErased(RuntimeFault):
    default_code = "payload_erased"


class RedactionFailed(RuntimeFault):
    default_code = "redaction_failed"


class WouldBeAltered(RedactionFailed):
    """A value that is returned to the program contains what looks like a secret, so it cannot be stored with the secret
    removed."""

    default_code = "would_be_altered"


class PayloadSealed(RuntimeFault):
    """A payload is encrypted, and its key is missing, invalid or wrong."""

    default_code = "payload_sealed"


class RunBlocked(RuntimeFault):
    """The run cannot continue without a person's decision. `hint` is the usual decision."""

    default_code = "worker_blocked"


class LeaseHeld(RunBlocked):
    """Another process has the lease on the run, or on other work."""

    default_code = "run_busy"


class RunWaiting(RunBlocked):
    """The run is waiting for a time or a signal, and its process does not wait that long. `until`: microseconds since
    1970, or None."""

    default_code = "waiting"

    def __init__(self, message: str, *, until: int | None, hint: str = "") -> None:
        super().__init__(message, hint=hint, details={"until": until})
        self.until = until


class EffectKeyReused(RunBlocked):
    """The key of an effect was already used for a different effect. `details` shows both."""

    default_code = "effect_key_reused"


class ReceiptRedacted(RunBlocked):
    """The effect happened, but its result was stored without what looked like a secret, so it is not returned."""

    default_code = "receipt_redacted"


class ReceiptUnkept(RunBlocked, TypeError):
    """The effect happened, but its result could not be stored. It is never repeated."""

    default_code = "receipt_unkept"


class StepFailed(RuntimeFault):
    """A step raised an error on its last try; the cause is that error."""

    default_code = "worker_failed"


class NotDone(Exception):
    """Raise this in an effect that certainly did not happen, so that it can be tried again."""


class HandedOver(BaseException):
    """The worker was asked to stop: its run stops at a step boundary, and another worker continues it. `RunCancelled`
    explains why this is not an `Exception`.
    """


class RunCancelled(BaseException):
    """The run was cancelled at a step boundary. Not an `Exception`, so that a broad `except` in a step does not swallow
    it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
