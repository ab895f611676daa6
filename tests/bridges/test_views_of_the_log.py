"""Batches and roles that this store moves: the file is a view, compared and exported as it stands now."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.samples import BATCH, ROLE
from bridges.scopes import FOLDER, Scoped, scoped
from workpacket.cli.main import main

ROLE_FILE = "docs/progress/auth-backend-eng.md"
BATCH_FILE = f"{FOLDER}/checkpoint.yaml"


@pytest.fixture
def scope(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Scoped:
    made = scoped(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs/progress").mkdir(parents=True)
    return made


def call(scope: Scoped, *words: str) -> tuple[int, str]:
    scope.capture.readouterr()
    status = main(list(words))
    return status, "".join(scope.capture.readouterr())


@pytest.mark.parametrize(
    ("form", "path", "data", "view", "own"),
    [
        ("batch", BATCH_FILE, BATCH, (b"last_batch: 2a", b"last_batch: 3a"), (b"a key that we", b"what we")),
        ("role", ROLE_FILE, ROLE, (b"in_progress", b"complete"), (b"run: 7", b"run: 8")),
    ],
    ids=["batch", "role"],
)
def test_what_is_the_logs_conflicts_and_what_is_the_owners_does_not(
    scope: Scoped, form: str, path: str, data: bytes, view: tuple[bytes, bytes], own: tuple[bytes, bytes]
) -> None:
    Path(path).write_bytes(data)
    assert call(scope, "log", "import", form, path)[0] == 0
    Path(path).write_bytes(data.replace(*own))
    assert "unchanged" in call(scope, "log", "import", form, path)[1]
    Path(path).write_bytes(data.replace(*view))
    status, said = call(scope, "log", "import", form, path)
    assert (status, "view_conflict" in said) == (69, True)


def test_an_imported_batch_is_where_the_scope_goes_on_and_is_exported_as_it_stands(scope: Scoped) -> None:
    Path(BATCH_FILE).write_bytes(BATCH.replace(b'  last_commit: "1234567"\n', b"").replace(b"- T002", b"- T002"))
    scope.write("tasks.yaml", scope.text("tasks.yaml").replace("pending   #", "completed   #", 1))
    assert call(scope, "log", "import", "batch", BATCH_FILE)[0] == 0
    scope.done("begin", "auth")
    assert scope.status()["view"]["next"]["label"] == "2b"
    status, text = call(scope, "log", "export", "batch", FOLDER)
    assert status == 0
    assert "note: a key that we do not know\n" in text
    assert "tool:\n  of: ours\n" in text
    assert "phase_cursor: testers\n" in text
    assert "unchanged" in call(scope, "log", "import", "batch", BATCH_FILE)[1]


def test_a_batch_that_never_had_a_file_is_exported_in_the_published_form(scope: Scoped) -> None:
    scope.done("begin", "auth")
    text = call(scope, "log", "export", "batch", FOLDER)[1]
    assert text.startswith("checkpoint:\n  spec_name: auth\n  spec_path: ./specs/active/auth\n  branch: main\n")
    assert "phase_cursor: testers\n" in text


def test_an_imported_role_goes_on_and_is_exported_with_its_notes_and_keys(scope: Scoped) -> None:
    Path(ROLE_FILE).write_bytes(ROLE)
    assert call(scope, "log", "import", "role", ROLE_FILE)[0] == 0
    assert call(scope, "runtime", "progress", "done", "auth", "backend-eng")[0] == 0
    text = call(scope, "log", "export", "role", "auth/build/backend-eng")[1]
    assert text == Path(ROLE_FILE).read_text("utf-8")
    assert "run: 7\n" in text
    assert text.endswith("Done\n")
