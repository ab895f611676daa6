"""A TCP proxy before a server, which cuts connections: at any moment, or just when an answer is on its way."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress

_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: the other side is told by a reset, not by a farewell


class Proxy:
    """Listens on `port` of the loopback device for as long as it is open."""

    def __init__(self, server_port: int) -> None:
        self._server = ("127.0.0.1", server_port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.lost = 0
        self._lose = b""
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Every connection there is now is gone, whatever was on its way."""
        with self._lock:
            pairs = list(self._pairs)
        for pair in pairs:
            self._end(pair)

    def lose_answer(self, tag: str) -> None:
        """Cut instead of passing on the next answer with this command tag: it was done, and nobody was told."""
        self._lose = tag.encode() + b"\0"

    def close(self) -> None:
        self._door.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    client.close()
                    continue
                pair = (client, server)
                for one in pair:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._pairs.add(pair)
                threading.Thread(target=self._pass_on, args=(pair, 0, 1), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(pair, 1, 0), daemon=True).start()

    def _pass_on(self, pair: tuple[socket.socket, socket.socket], source: int, target: int) -> None:
        with suppress(OSError):
            while data := pair[source].recv(65536):
                if source == 1 and self._lose and self._lose in data:
                    self._lose = b""
                    self.lost += 1
                    break
                pair[target].sendall(data)
        self._end(pair)

    def _end(self, pair: tuple[socket.socket, socket.socket]) -> None:
        with self._lock:
            self._pairs.discard(pair)
        for one in pair:
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
                one.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                one.close()
