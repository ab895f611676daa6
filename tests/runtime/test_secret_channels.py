"""In no channel does a secret reach the disk: it is hidden, or the name that contains it is refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runtime.secret_lists import SecretValue, secret_values
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.errors import RedactionFailed
from workpacket.runtime.records.redaction import Redactor
from workpacket.runtime.run import Run
from workpacket.runtime.scripted import program_step
from workpacket.runtime.stores.transfer import cloudevent_lines, export_lines

pytestmark = pytest.mark.share(5)

TOKEN = "gh" + "p_" + "a1B2" * 9
RUN = "work@"

Channel = Callable[[Runtime, Any], object]


def in_run(act: Callable[[Run, Any], object]) -> Channel:
    def channel(runtime: Runtime, secret: Any) -> None:
        with runtime.run("work", fresh=True) as run:
            act(run, secret)

    return channel


def begun(runtime: Runtime, name: str, **request: Any) -> None:
    with runtime.run(name, **request):
        pass


def failing(run: Run, secret: Any) -> None:
    def fail() -> None:
        raise ValueError(f"cannot log in with {secret}")

    with pytest.raises(ValueError, match="cannot log in"):
        run.step("fails", fail)


def signalled(runtime: Runtime, secret: Any) -> None:
    with runtime.run("work", fresh=True) as run:
        runtime.signal(run.id, "go", 1, key=f"because of {secret}")


def cancelled(runtime: Runtime, secret: Any) -> None:
    with runtime.run("work", fresh=True) as run:
        run.step("a", int)
    runtime.cancel(run.id, f"because of {secret}")


CHANNELS: dict[str, Channel] = {
    "result": in_run(lambda run, secret: run.step("a", lambda: secret)),
    "nested result": in_run(lambda run, secret: run.step("a", lambda: {"deep": [secret]})),
    "argument": in_run(lambda run, secret: run.step("a", str, secret)),
    "effect": in_run(lambda run, secret: run.effect("a", lambda _: 1, secret, key="k", recovery="idempotent")),
    "receipt": in_run(lambda run, secret: run.effect("a", lambda: secret, key="k", recovery="idempotent")),
    "target": in_run(lambda run, secret: run.effect("a", int, key="k", target=str(secret), recovery="idempotent")),
    "published value": in_run(lambda run, secret: run.publish("at", secret)),
    "error": in_run(failing),
    "input": lambda runtime, secret: begun(runtime, "work", inputs={"note": secret}, fresh=True),
    "key of a signal": signalled,
    "reason": cancelled,
}
NAMES: dict[str, Channel] = {
    "run": begun,
    "key of the run": lambda runtime, secret: begun(runtime, "work", key=secret),
    "packet": lambda runtime, secret: begun(runtime, "work", packet=secret),
    "scope": lambda runtime, secret: begun(runtime, "work", scope=[secret], fresh=True),
    "version": lambda runtime, secret: begun(runtime, "work", code_version=secret, fresh=True),
    "name of an input": lambda runtime, secret: begun(runtime, "work", inputs={secret: 1}, fresh=True),
    "step": in_run(lambda run, secret: run.step(secret, int)),
    "name of an argument": in_run(lambda run, secret: run.step("a", dict, **{secret: 1})),
    "effect": in_run(lambda run, secret: run.effect(secret, int, recovery="idempotent")),
}


def opened(folder: Path, actor: str = "tester", holder: str = "", redactor: Redactor | None = None) -> Runtime:
    settings = Settings(actor=actor, holder=holder, redactor=redactor or Redactor())
    return Runtime.open(folder / "runs.db", settings)


def on_disk(runtime: Runtime, folder: Path) -> bytes:
    """Everything that was stored, as files and as exported."""
    streams = [head.stream for head in runtime.store.heads()]
    exported = [line for stream in streams for line in export_lines(runtime.store, stream)]
    events = [line for stream in streams for line in cloudevent_lines(runtime.store, stream)]
    files = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    return files + "".join([*exported, *events]).encode()


@pytest.mark.parametrize("channel", CHANNELS)
def test_no_channel_stores_a_secret(tmp_path: Path, channel: str) -> None:
    with opened(tmp_path) as runtime:
        try:
            CHANNELS[channel](runtime, TOKEN)
        except RedactionFailed:
            assert channel == "published value"
        assert TOKEN.encode() not in on_disk(runtime, tmp_path)


@pytest.mark.parametrize("channel", NAMES)
def test_a_name_that_contains_a_secret_is_refused(tmp_path: Path, channel: str) -> None:
    with opened(tmp_path) as runtime:
        with pytest.raises(RedactionFailed, match="looks like a secret"):
            NAMES[channel](runtime, TOKEN)
        assert TOKEN.encode() not in on_disk(runtime, tmp_path)


def test_the_actor_is_stored_without_a_secret(tmp_path: Path) -> None:
    with opened(tmp_path, actor=f"agent:{TOKEN}", holder=f"host {TOKEN}") as runtime:
        with runtime.run("work") as run:
            run.step("a", int)
        assert TOKEN.encode() not in on_disk(runtime, tmp_path)


def test_nearly_every_secret_of_the_list_stays_off_the_disk(tmp_path: Path) -> None:
    """The whole list, as the results and the error texts of one run."""
    secrets = secret_values()
    variables = {one.variable: one.content for one in secrets if one.variable}
    with opened(tmp_path, redactor=Redactor.from_environment(variables)) as runtime:
        with runtime.run("work") as run:
            for number, one in enumerate(secrets):
                run.step(f"step-{number}", given, one)
                failing_with(run, one)
        stored = on_disk(runtime, tmp_path)
    found = [one.kind for one in secrets if any(len(s) > 9 and s.encode() in stored for s in one.secrets)]
    assert len(found) <= 0.05 * len(secrets), found


def given(one: SecretValue) -> Any:
    return one.value


def failing_with(run: Run, one: SecretValue) -> None:
    if isinstance(one.value, str):
        failing(run, one.value)


@pytest.mark.parametrize("before", [0, 1900, 1960, 1990, 5000])
def test_an_error_text_is_searched_before_it_is_cut(tmp_path: Path, before: int) -> None:
    with opened(tmp_path) as runtime:
        in_run(lambda run, secret: failing(run, f"{'x ' * (before // 2)}{secret}"))(runtime, TOKEN)
        stored = on_disk(runtime, tmp_path)
    assert TOKEN[:12].encode() not in stored


@pytest.mark.parametrize("after", [0, 16 * 1024 - 20, 16 * 1024 - 60, 16 * 1024 - 1500, 40_000])
def test_the_end_of_an_output_is_searched_before_it_is_cut(tmp_path: Path, after: int) -> None:
    lines = "\n".join(["MIIE" + "Q7" * 30] * 25)
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{lines}\n-----END RSA PRIVATE KEY-----\n"
    program = f"print({key!r} + {TOKEN[:4]!r} + {TOKEN[4:]!r} + ' ' * {after})"
    with opened(tmp_path) as runtime:
        with runtime.run("work") as run:
            program_step(run._session, "program", [sys.executable, "-c", program])
        stored = runtime.store.payload(next(e for e in runtime.store.read(run.id) if e.type == "step.completed"))
    assert stored is not None
    assert TOKEN[20:].encode() not in stored
    assert b"Q7Q7Q7Q7Q7Q7Q7Q7" not in stored
