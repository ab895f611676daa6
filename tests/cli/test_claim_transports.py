"""Claims between clones whose hub is reached by path, over SSH or over HTTPS, and where only branches may be pushed."""

from __future__ import annotations

import os
import shlex
import ssl
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cli.test_claim import NAME, Clones, decided_by_policy
from git.scratch import git
from workpacket.shell import claim_refs

_SSH = """#!/bin/sh
# In the place of ssh: what would be run on the other machine is run here.
printf '%s\\n' "$*" >> {log}
for last; do :; done
exec sh -c "$last"
"""
_ONLY_BRANCHES = """#!/bin/sh
case "$1" in
    refs/heads/*) exit 0 ;;
    *) echo "only branches may be pushed"; exit 1 ;;
esac
"""


def certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hub")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "hub.pem"
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


class Hub(BaseHTTPRequestHandler):
    """Git's own smart protocol: each request is handed to `git http-backend`."""

    root = Path()

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ, "GIT_PROJECT_ROOT": str(self.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "someone", "REMOTE_ADDR": "127.0.0.1",
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        said = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environment, check=True)
        head, _, content = said.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split(" ")[0]))
        for field, value in fields.items():
            self.send_header(field, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """The tests say themselves what went wrong."""


@pytest.fixture
def clones(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Clones:
    return Clones(tmp_path, capsys, monkeypatch)


@pytest.fixture(params=["path", "ssh", "https"])
def reached(request: pytest.FixtureRequest, clones: Clones, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clones]:
    """Clones that reach their hub in one of these ways, and wait for it also on a busy machine."""
    monkeypatch.setattr(claim_refs, "PATIENCE", 60.0)
    hub = clones.folder / "hub.git"
    if request.param == "path":
        yield clones
        return
    if request.param == "ssh":
        log = clones.folder / "asked"
        program = clones.folder / "ssh"
        program.write_text(_SSH.format(log=shlex.quote(str(log))))
        program.chmod(0o755)
        for who in ("ann", "bob"):
            git(clones.folder / who, "config", "core.sshCommand", shlex.quote(str(program)))
            git(clones.folder / who, "remote", "set-url", "origin", f"ssh://git@hub.invalid{hub}")
        yield clones
        assert "git-receive-pack" in log.read_text()
        return
    git(hub, "config", "http.receivepack", "true")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trusted = certificate(clones.folder)
    context.load_cert_chain(trusted)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Hub,), {"root": clones.folder}))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("GIT_SSL_CAINFO", str(trusted))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for who in ("ann", "bob"):
        url = f"https://127.0.0.1:{server.server_address[1]}/hub.git"
        git(clones.folder / who, "remote", "set-url", "origin", url)
    yield clones
    server.shutdown()
    server.server_close()
    thread.join()


def test_one_claim_wins_and_the_other_clone_is_told_who(reached: Clones) -> None:
    assert reached("ann", "claim", NAME, "--remote", "--json").data["shared_claim"] == "taken"
    assert reached.claims() == f"refs/workpacket/claims/{NAME}"
    refused = reached("bob", "claim", NAME, "--remote")
    assert (refused.status, f"ann holds {NAME} in another clone, until " in refused.err) == (3, True)
    git(reached.folder / "bob", "fetch", "--quiet")


def test_where_only_branches_may_be_pushed_the_policy_names_one(reached: Clones) -> None:
    hook = reached.folder / "hub.git/hooks/update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(_ONLY_BRANCHES)
    hook.chmod(0o755)
    local = reached("ann", "claim", NAME, "--remote", "--json")
    assert (local.status, local.data["shared_claim"] == "taken", reached.claims()) == (0, False, "")
    git(reached.folder / "ann", "checkout", "--quiet", "--", ".")
    git(reached.folder / "ann", "clean", "--quiet", "-fd")
    decided_by_policy(reached, 'claims = "remote"\nclaim_ref = "refs/heads/claims/{id}"')
    assert reached("ann", "claim", NAME, "--json").data["shared_claim"] == "taken"
    assert git(reached.folder / "hub.git", "for-each-ref", "--format=%(refname)", f"refs/heads/claims/{NAME}")
    refused = reached("bob", "claim", NAME)
    assert (refused.status, "(claimed_by_other)" in refused.err) == (3, True)
