"""A line to a PostgreSQL server on which something happens at a statement that a test names.

It stands between a client and the server, and carries their bytes. Once the client has said the statement so many
times, the line is cut before the server hears it, or after it has done it and before the client hears; or whatever the
test wants happens first: a backend killed, the server crashed, the client itself killed.
"""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from urllib.parse import urlsplit

from postgres_server import Server

_BLOCK = 1 << 20
_ANSWER_S = 0.3
"""How long the server has to do the last statement that it hears."""


class Line:
    """A line; a context manager.

    Args:
        server: where it leads.
        statement: what the client says, or a part of it.
        turn: which time counts, from 1 on; 0: none, it is only counted.
        heard: whether the server hears and does it before the line is cut.
        do: happens instead of a cut, and the statement then goes its way.

    Attributes:
        happened: set once it is.
        said: how often the client has said it.
    """

    def __init__(
        self,
        server: Server,
        statement: str,
        *,
        turn: int = 1,
        heard: bool = False,
        do: Callable[[], object] | None = None,
    ) -> None:
        self.happened = threading.Event()
        self._port = server.port
        self._statement = statement.encode()
        self._turn = turn
        self.said = 0
        self._heard = heard
        self._do = do
        self._listener = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> Line:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()

    def through(self, place: str) -> str:
        """The URL of a ledger, by this line."""
        port = urlsplit(place).port
        return place.replace(f":{port}/", f":{self._listener.getsockname()[1]}/")

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        try:
            with client, socket.create_connection(("127.0.0.1", self._port)) as server:
                while self._carry_on(client, server):
                    pass
        except OSError:
            return  # the server is away: so is the line

    def _carry_on(self, client: socket.socket, server: socket.socket) -> bool:
        """Carry what there is; False once the line is cut."""
        ready, _, _ = select.select([client, server], [], [])
        for one, other in ((client, server), (server, client)):
            if one not in ready:
                continue
            carried = one.recv(_BLOCK)
            if not carried:
                return False
            if one is client and self._is_due(carried):
                if self._do is None:
                    if self._heard:
                        self._let_it_be_done(server, carried)
                    return False
                self._do()
            other.sendall(carried)
        return True

    def _is_due(self, carried: bytes) -> bool:
        if self._statement not in carried:
            return False
        self.said += 1
        if self.said == self._turn:
            self.happened.set()
        return self.said == self._turn

    def _let_it_be_done(self, server: socket.socket, carried: bytes) -> None:
        server.sendall(carried)
        server.settimeout(_ANSWER_S)
        try:
            while server.recv(_BLOCK):
                pass
        except TimeoutError:
            return
