"""The exceptions of the runtime. Each code is a stop reason, from which the exit status and the remedies follow."""

from __future__ import annotations

from collections.abc import Mapping

from workpacket.errors import WorkpacketError
from workpacket.model.canonical import Json


class RuntimeFault(WorkpacketError):
    """Base of all exceptions below; `details` are the facts of the case, for --json and reports."""

    default_code = "unregistered"

    def __init__(
        self, message: str, *, code: str = "", hint: str = "", details: Mapping[str, Json] | None = None
    ) -> None:
        super().__init__(code or self.default_code, message, hint=hint)
        self.details: Mapping[str, Json] = details or {}


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


class LeaseHeld(RuntimeFault):
    default_code = "run_busy"


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
    """A value that the program receives again contains what looks like a secret, so it is not stored without it."""

    default_code = "would_be_altered"


class PayloadSealed(RuntimeFault):
    """A payload is encrypted, and its key is missing, invalid, or another one."""

    default_code = "payload_sealed"


class RunBlocked(RuntimeFault):
    """The run cannot continue without a person's choice. `hint` is the usual choice."""

    default_code = "worker_blocked"


class RunWaiting(RunBlocked):
    """The run waits for a time or a signal, longer than its process does. `until`: microseconds since 1970, or None."""

    default_code = "waiting"

    def __init__(self, message: str, *, until: int | None, hint: str = "") -> None:
        super().__init__(message, hint=hint, details={"until": until})
        self.until = until


class EffectKeyReused(RunBlocked):
    """The key of an effect was already used for another one. `details` shows both."""

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
    """The worker was asked to stop: its run ends at a boundary, and another worker continues it. `RunCancelled`
    explains why this is not an `Exception`.
    """


class RunCancelled(BaseException):
    """The run was cancelled at a boundary. Not an `Exception`, so that a broad `except` in a step does not swallow
    it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
