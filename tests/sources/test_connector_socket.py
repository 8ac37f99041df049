"""The process connector's socket: what it lets through, and why there may be none. Real kernel, as root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources import connector_socket
from gpuledger.sources.connector_socket import EVENT, EVENT_AT, EXEC, EXIT, FORK, Connection

SAY = """
from gpuledger.errors import Unavailable
from gpuledger.sources.connector_socket import Connection
try:
    Connection().close()
    print("listening")
except Unavailable as refusal:
    print(refusal.code, bool(refusal.hint), refusal)
"""


@pytest.fixture(autouse=True)
def as_root() -> None:
    """Kernel events need root: a skip elsewhere, a failure in CI."""
    if os.geteuid() != 0:
        if os.environ.get("CI"):
            pytest.fail("kernel events of processes are tested as root")
        pytest.skip("kernel events of processes are tested as root")


@pytest.fixture
def connection() -> Iterator[Connection]:
    """A listening socket."""
    made = Connection()
    yield made
    made.close()


def listeners() -> int:
    """Sockets in the connector's group, of the whole machine."""
    lines = [line.split() for line in Path("/proc/net/netlink").read_text(encoding="ascii").splitlines()[1:]]
    return sum(protocol == "11" and int(groups, 16) & 1 for _, protocol, _, groups, *_ in lines)


def drain(connection: Connection, pid: int) -> list[tuple[int, tuple[int, ...]]]:
    """Events that name a process in any of their words."""
    events = []
    while (datagram := connection.receive()) is not None:
        what, _, _, *words = EVENT.unpack_from(datagram, EVENT_AT)
        if pid in words:
            events.append((what, tuple(words)))
    return events


def test_births_execs_and_ends_are_told(connection: Connection) -> None:
    """In this order, with the kernel's own numbers, and with its clock."""
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    time.sleep(0.05)
    assert [what for what, _ in drain(connection, child.pid)] == [FORK, EXEC, EXIT]


def test_threads_are_not_told_unless_asked_for(connection: Connection) -> None:
    """A hundred threads of a GPU job cost nothing; while a process has lost its first one, each counts."""
    own = os.getpid()

    def one_thread() -> list[int]:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
        time.sleep(0.02)
        return [what for what, words in drain(connection, own) if words[1] == own]

    assert one_thread() == []
    connection.tell_of_threads(True)
    assert one_thread() == [EXIT]
    connection.tell_of_threads(False)
    assert one_thread() == []


@pytest.mark.parametrize("kinds", [{EXEC}, {FORK}, {EXIT}, {FORK, EXIT}])
def test_only_what_is_asked_for_is_told(kinds: set[int]) -> None:
    """Whoever waits for execs is not woken for anything else."""
    made = Connection(frozenset(kinds))
    child = subprocess.Popen(["/bin/true"])
    child.wait()
    time.sleep(0.05)
    assert {what for what, _ in drain(made, child.pid)} == kinds
    made.close()


def test_a_full_buffer_is_counted_by_spells() -> None:
    """The kernel says once that it lost something, not how much."""
    small = Connection(buffer_bytes=1)
    for _ in range(100):
        subprocess.run(["/bin/true"], check=True)
    drain(small, 0)
    assert small.overruns == 1
    small.close()


def test_closing_leaves_no_listener() -> None:
    """The kernel stops making events when nobody is left to hear them."""
    before = listeners()
    made = Connection()
    assert listeners() == before + 1
    made.close()
    assert listeners() == before


def test_a_refused_constructor_leaves_no_listener(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when it gave up waiting; the message without an answer goes to a connector nobody has registered."""
    before = listeners()
    monkeypatch.setattr(connector_socket, "_CN_VAL_PROC", 99)
    with pytest.raises(Unavailable, match="CONFIG_PROC_EVENTS") as caught:
        Connection()
    assert (caught.value.code, bool(caught.value.hint)) == ("connector-unsupported", True)
    assert listeners() == before


def test_it_imports_no_more_than_it_needs() -> None:
    """The package of the library brings in all it has, which weighs more than the agent's margin."""
    code = (
        "import sys; from gpuledger.sources.connector_socket import Connection; Connection().close();"
        "print('pyroute2.ndb' in sys.modules, 'pyroute2' in sys.modules); import pyroute2; pyroute2.IPRoute"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["unshare", "--net"], "connector-namespace"),
        (["unshare", "--pid", "--fork", "--mount-proc"], "connector-namespace"),
        (["unshare", "--user", "--map-root-user"], "connector-namespace"),
    ],
    ids=["network", "pid", "user"],
)
def test_a_container_is_told_which_namespace_it_lacks(command: list[str], code: str) -> None:
    """The connector lives in the host's own namespaces, and is mute or absent elsewhere: real ones, by unshare(1)."""
    assert shutil.which("unshare"), "util-linux is needed"
    done = subprocess.run([*command, sys.executable, "-c", SAY], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{code} True")
    assert command[1].strip("-").removesuffix("work") in done.stdout


def test_a_user_without_the_capability_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels before 6.6 refuse to bind; the library hides that, a plain socket says it."""

    class Forbidden(socket.socket):
        """A socket as such a user has it."""

        def bind(self, *_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

    library = connector_socket._library()
    monkeypatch.setattr(library.ProcEventSocket, "bind", lambda _: {}["no free address available"])
    monkeypatch.setattr(socket, "socket", Forbidden)
    with pytest.raises(Unavailable, match="CAP_NET_ADMIN") as caught:
        Connection()
    assert (caught.value.code, bool(caught.value.hint)) == ("connector-forbidden", True)


def test_an_ordinary_user_is_refused_or_hears(tmp_path: Path) -> None:
    """What the kernel allows decides: from 6.6 on anyone may listen, before nobody without the capability."""
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c", SAY]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    if done.returncode:
        pytest.skip(f"another user cannot run this interpreter: {done.stderr.strip()[-80:]}")
    assert done.stdout.startswith(("listening", "connector-forbidden True"))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyroute2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyroute2", None)
    with pytest.raises(Unavailable, match="pyroute2") as caught:
        Connection()
    assert (caught.value.code, caught.value.hint) == ("connector-library", "pip install pyroute2")


def test_a_library_of_another_shape_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later version without what is used of it: said, not crashed."""
    monkeypatch.setitem(sys.modules, "pyroute2.netlink.connector.cn_proc", ModuleType("cn_proc"))
    with pytest.raises(Unavailable, match="not one that gpuledger knows how to use") as caught:
        Connection()
    assert caught.value.code == "connector-library"


def test_a_kernel_without_a_connector_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No such protocol: said in the kernel's own words."""
    library = connector_socket._library()

    def absent(*_: object) -> None:
        raise OSError(93, "Protocol not supported")

    monkeypatch.setattr(library, "ProcEventSocket", absent)
    with pytest.raises(Unavailable, match="Protocol not supported") as caught:
        Connection()
    assert caught.value.code == "connector-unsupported"
