"""A PgBouncer of our own before a server: it lends a connection for one transaction and no longer."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from postgres.server import Server, free_port, identity


def program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class Pooler:
    def __init__(self, server: Server, folder: Path, connections: int) -> None:
        self.port = free_port()
        self._server = server
        users = folder / "users"
        users.write_text('"owner" ""\n', "utf-8")
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"[databases]\n* = host={server.folder} port=5432\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {users}\npool_mode = transaction\ndefault_pool_size = {connections}\n"
            "max_client_conn = 100\n",
            "utf-8",
        )
        for path in (folder, users, settings):
            path.chmod(0o755)
        found = program()
        assert found is not None
        with open(folder / "log", "ab") as log:  # noqa: PTH123  # a plain file for another process
            self._process = subprocess.Popen([found, settings], stdout=log, stderr=log, **identity())
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError((folder / "log").read_text("utf-8", "replace")[-2000:])

    def url(self, **words: str) -> str:
        query = "&".join(f"{name}={value}" for name, value in words.items())
        return f"postgresql://owner@127.0.0.1:{self.port}/postgres?{query}"

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)
