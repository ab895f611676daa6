"""TLS by the words of the URL: a server that is not the one of the certificate's root gets nothing, nor does one
without a certificate. Certificates are made here, at run time, and live for an hour."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from postgres.server import Server, free_port, installations, knows_tls, version_of
from workpacket.runtime.errors import StoreUnavailable
from workpacket.runtime.stores.postgres.store import PostgresStore
from workpacket.runtime.testing import Writer


def make_root(folder: Path, host: str) -> Path:
    """The certificate of a server that vouches for itself, with the key beside it; its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = dt.datetime.now(dt.UTC)
    names: x509.GeneralName = x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (folder / "root.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "root.pem"


def with_tls(folder: Path, host: str) -> tuple[Server, Path]:
    """A server that lets nobody in without TLS, and the root that vouches for it."""
    able = [found for found in installations() if knows_tls(found)]
    if not able:
        pytest.skip("no PostgreSQL on this machine was built with TLS")
    root = make_root(folder, host)
    settings = {"ssl": "on", "ssl_cert_file": "root.pem", "ssl_key_file": "key.pem"}
    server = Server(settings, port=free_port(), installed=max(able, key=version_of))
    for name in ("root.pem", "key.pem"):
        placed = server.data / name
        placed.write_bytes((folder / name).read_bytes())
        placed.chmod(0o600)
        if server.user is not None:
            os.chown(placed, server.user.pw_uid, server.user.pw_gid)
    (server.data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n", "utf-8")
    server.start()
    return server, root


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    server, root = with_tls(tmp_path_factory.mktemp("tls") / "right", "127.0.0.1")
    yield server, root
    server.remove()


def test_the_right_root_lets_a_writer_in(tls: tuple[Server, Path]) -> None:
    server, root = tls
    store = PostgresStore(server.url(sslmode="verify-full", sslrootcert=str(root)), patience=5.0)
    store.append(Writer("w").request("a"))
    (version,) = store.access.one("SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    assert version.startswith("TLSv1.")
    store.close()


def test_a_wrong_root_is_refused_at_once(tls: tuple[Server, Path], tmp_path: Path) -> None:
    server, _ = tls
    other = make_root(tmp_path / "other", "127.0.0.1")
    with pytest.raises(StoreUnavailable, match="certificate") as fault:
        PostgresStore(server.url(sslmode="verify-full", sslrootcert=str(other)), patience=30.0)
    assert fault.value.code == "store_read_only"


def test_a_certificate_for_another_host_is_refused(tls: tuple[Server, Path], tmp_path: Path) -> None:
    server, root = tls
    url = server.url(sslmode="verify-full", sslrootcert=str(root)).replace("127.0.0.1", "localhost")
    with pytest.raises(StoreUnavailable, match="certificate"):
        PostgresStore(url, patience=30.0)


def test_who_asks_for_no_tls_is_refused_by_such_a_server(tls: tuple[Server, Path]) -> None:
    with pytest.raises(StoreUnavailable) as fault:
        PostgresStore(tls[0].url(sslmode="disable"), patience=30.0)
    assert fault.value.code == "store_read_only"


def test_who_asks_for_tls_is_refused_by_a_server_without(server: Server, tmp_path: Path) -> None:
    """An attacker in between who takes TLS away gets no password and no data."""
    plain = Server(port=free_port())
    try:
        plain.start()
        root = make_root(tmp_path / "root", "127.0.0.1")
        with pytest.raises(StoreUnavailable, match="SSL") as fault:
            PostgresStore(plain.url(sslmode="verify-full", sslrootcert=str(root)), patience=30.0)
        assert fault.value.code == "store_read_only"
    finally:
        plain.remove()
