"""Two hosts in network namespaces of their own, with clocks two hours apart, and the cable of one of them is pulled.

    one  (clock an hour ahead)  10.77.1.2 --- 10.77.1.1 \\
                                                         hub --- the socket of the server
    two  (clock an hour behind) 10.77.2.2 --- 10.77.2.1 /

What host one sent while its cable was out arrives after host two took the lease over: a zombie's write, which is
refused. Clocks are skewed for everything in the process where `faketime` is installed, else for the runtime alone.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from postgres.conftest import running_server
from postgres.server import Server

FORWARDER = """
import socket, sys, threading
def pass_on(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for one in (source, target):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
door = socket.create_server(("0.0.0.0", 5432))
print("ready", flush=True)
while True:
    client, _ = door.accept()
    server = socket.socket(socket.AF_UNIX)
    server.connect(sys.argv[1])
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
"""
HOST = """
import sys, time
skew, who, url = float(sys.argv[1]), sys.argv[2], sys.argv[3]
from workpacket.runtime import Runtime, Settings
from workpacket.runtime.errors import LeaseHeld, LeaseLost
from workpacket.runtime.testing import Writer
from workpacket.runtime.holders import SystemClock
class Skewed(SystemClock):
    def now(self): return super().now() + int(skew * 1e6)
    def ticks(self): return super().ticks() + skew
store = Runtime.open(url, Settings(clock=Skewed(), holder=who)).store
print(int(time.time()), flush=True)
for number, line in enumerate(sys.stdin):
    try:
        if line == "take\\n":
            lease = store.acquire("run@1", who, 1.0)
        if line == "write\\n":
            store.append(Writer(f"{who} {number}", "run@1").request(who, fence=lease.token))
        print("done", flush=True)
    except (LeaseHeld, LeaseLost) as fault:
        print(fault.code, flush=True)
"""
HUB, HOSTS = f"wp-hub-{os.getpid()}", (f"wp-one-{os.getpid()}", f"wp-two-{os.getpid()}")


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def inside(namespace: str, *command: str) -> subprocess.Popen[str]:
    words = ["ip", "netns", "exec", namespace, *command]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(host: subprocess.Popen[str], what: str) -> None:
    assert host.stdin is not None
    host.stdin.write(f"{what}\n")
    host.stdin.flush()


def hear(host: subprocess.Popen[str]) -> str:
    assert host.stdout is not None
    return host.stdout.readline().strip()


def ask(host: subprocess.Popen[str], what: str) -> str:
    tell(host, what)
    return hear(host)


@pytest.fixture
def cables() -> Iterator[None]:
    """The three namespaces, and a cable from each host to the hub."""
    try:
        ip("netns", "add", HUB)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may make no network namespaces here")
    try:
        for number, host in enumerate(HOSTS, 1):
            ip("netns", "add", host)
            ip("-n", HUB, "link", "add", f"to{number}", "type", "veth", "peer", "name", "cable", "netns", host)
            ip("-n", HUB, "address", "add", f"10.77.{number}.1/24", "dev", f"to{number}")
            ip("-n", HUB, "link", "set", f"to{number}", "up")
            ip("-n", host, "address", "add", f"10.77.{number}.2/24", "dev", "cable")
            ip("-n", host, "link", "set", "cable", "up")
        yield
    finally:
        for name in (HUB, *HOSTS):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


@pytest.fixture
def server() -> Iterator[Server]:
    with running_server() as running:
        yield running


def test_leases_are_right_on_hosts_whose_clocks_and_cables_are_wrong(cables: None, server: Server) -> None:
    started = [inside(HUB, sys.executable, "-c", FORWARDER, f"{server.folder}/.s.PGSQL.5432")]
    try:
        assert hear(started[0]) == "ready"
        for number, (host, skew) in enumerate(zip(HOSTS, ("+3600", "-3600"), strict=True), 1):
            faked = ["faketime", "-f", f"{skew}s"] if shutil.which("faketime") else []
            url = f"postgresql://owner@10.77.{number}.1/postgres"
            started.append(inside(host, *faked, sys.executable, "-c", HOST, skew, f"host{number}", url))
        one, two = started[1:]
        clocks = int(hear(one)) - int(hear(two))
        assert not shutil.which("faketime") or clocks > 7000
        require_right_leases(one, two)
    finally:
        for process in started:
            process.kill()
            process.communicate()


def require_right_leases(one: subprocess.Popen[str], two: subprocess.Popen[str]) -> None:
    assert ask(one, "take") == "done"
    assert ask(one, "write") == "done"
    assert ask(two, "take") == "run_busy"
    ip("-n", HOSTS[0], "link", "set", "cable", "down")
    tell(one, "write")  # it leaves when the cable is in again
    time.sleep(1.2)
    assert ask(two, "take") == "done"
    assert ask(two, "write") == "done"
    ip("-n", HOSTS[0], "link", "set", "cable", "up")
    assert hear(one) == "lease_lost"
    time.sleep(1.2)
    assert ask(one, "take") == "done"
    assert ask(one, "write") == "done"
    assert ask(two, "write") == "lease_lost"
