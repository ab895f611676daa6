"""A package registers a store by the scheme of its URL, and every command then uses it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from git.scratch import begin_repository
from workpacket.cli.main import main
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.runtime import Runtime
from workpacket.runtime.stores.place import store_at
from workpacket.runtime.testing import folder_store

Register = Callable[..., None]


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Register:
    """Install a package that opens URLs of a scheme with a function."""

    def register(scheme: str, function: str = "my_store:open_url", package: str = "my-store") -> None:
        site = tmp_path / package
        about = site / f"{package.replace('-', '_')}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[workpacket.stores]\n{scheme} = {function}\n")
        shutil.copy(folder_store.__file__, site / "my_store.py")
        monkeypatch.syspath_prepend(str(site))

    return register


@pytest.fixture
def url(tmp_path: Path, register: Register, monkeypatch: pytest.MonkeyPatch) -> str:
    """A repository whose runs are kept by the store of another package, with one finished run."""
    register("folder")
    place = tmp_path / "project"
    place.mkdir()
    begin_repository(place)
    monkeypatch.chdir(place)
    url = f"folder://{tmp_path / 'runs'}"
    monkeypatch.setenv("WORKPACKET_STORE", url)
    with Runtime.open() as runtime, runtime.run("import", key="1") as run:
        run.step("count", lambda: 7)
    return url


def test_runs_are_kept_where_the_url_says(url: str, tmp_path: Path) -> None:
    assert (tmp_path / "runs" / "journal").exists()
    with Runtime.open(url) as runtime:
        assert [line.id for line in runtime.runs()] == ["import@1"]


@pytest.mark.parametrize(
    "words",
    [
        ("runs", "list"),
        ("runs", "show", "import@1"),
        ("runs", "verify"),
        ("runs", "export", "import@1"),
        ("runs", "tail", "import@1"),
        ("questions",),
    ],
    ids=" ".join,
)
def test_commands_about_runs_use_the_registered_store(
    url: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["runtime", *words])

    said = capsys.readouterr()
    assert (status, said.err) == (0, "")


def test_doctor_examines_a_registered_store(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "doctor", "--json"]) == 0

    data = json.loads(capsys.readouterr().out)["data"]
    assert data["store"] == "folder://"
    assert {"check": "store", "result": "pass", "code": "", "details": ["1 run"]} in data["checks"]


def test_doctor_finds_what_is_damaged_in_a_registered_store(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "runs" / "journal"
    journal.write_bytes(journal.read_bytes().replace(b'"run.started"', b'"run.strated"'))

    assert main(["runtime", "doctor"]) == 71
    assert "is damaged" in capsys.readouterr().err


def test_a_registered_store_without_a_queue_says_so(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "queue", "list"]) == 57

    assert "this store has no queues" in capsys.readouterr().err


def test_the_command_for_tables_is_for_postgresql_only(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runtime", "store", "show"]) == 2

    assert "manages tables on PostgreSQL" in capsys.readouterr().err


def test_a_scheme_that_no_package_opens_is_named_without_the_rest_of_the_url() -> None:
    with pytest.raises(StoreUnavailable) as caught:
        store_at("etcd://user:hunter2@host/runs")

    assert "a etcd:// store cannot be used here: no installed package can open them" in str(caught.value)
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_a_scheme_that_two_packages_open_is_refused(register: Register) -> None:
    register("folder", package="one")
    register("folder", package="two")

    with pytest.raises(StoreUnavailable, match="more than one installed package can open them: one, two"):
        store_at("folder:///nowhere")


def test_a_package_that_cannot_be_imported_is_named(register: Register) -> None:
    register("broken", "missing_module:open_url", package="broken-store")

    with pytest.raises(StoreUnavailable, match="broken-store, which opens broken:// stores, cannot be imported"):
        store_at("broken://")


def test_a_folder_is_not_taken_for_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORKPACKET_STORE", str(folder))

    assert main(["runtime", "runs", "list"]) == 57

    assert f"{folder} is a folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
