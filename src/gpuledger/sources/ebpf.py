"""Events from programs of our own in the kernel: exec, exit, and every open of an NVIDIA device node.

In: nothing but the running kernel. Out: :class:`ProcessEvent`. A process is named by the event itself, so one
that is dead before anybody reads is named like one that lives, and what finds no room is counted one by one.
An open tells that a process asked, no more: it may have been refused, and access(2) asks too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack

from gpuledger.sources import procfs
from gpuledger.sources.bpf import Call, system_call
from gpuledger.sources.bpf_object import BpfObject, read_built
from gpuledger.sources.bpf_ring import Counters, Ring
from gpuledger.sources.ebpf_host import EbpfHost
from gpuledger.sources.ebpf_records import Records
from gpuledger.sources.process_events import ProcessEvent

RING_BYTES = 4 * 1024 * 1024
"""Room for about 7,000 processes, from exec to exit, between two reads, which come five times a second. It is
mapped twice and counts as resident twice (kernel/bpf/ringbuf.c), from the start."""

_TRACEPOINTS = ("on_exec", "on_exit")


class EbpfSource:
    """Kernel events; see :class:`gpuledger.sources.process_events.EventSource`.

    Args:
        ring_bytes: of the buffer in the kernel: a power of two, a page at least.
        majors: major numbers of the device nodes that are meant; NVIDIA's by default, asked anew at each snapshot.
        host: facts of this machine.
        call: bpf(2); this machine's by default.

    Raises:
        Unavailable: this kernel or this user has no such events; the code and hint say why.
    """

    method = "ebpf"
    sees_opens = True
    counts_losses = True
    pause_s = 0.2

    def __init__(
        self,
        *,
        ring_bytes: int = RING_BYTES,
        majors: Collection[int] | None = None,
        host: EbpfHost | None = None,
        call: Call | None = None,
    ) -> None:
        self._host = host = host or EbpfHost()
        self._given_majors = majors
        self._majors: frozenset[int] = frozenset()
        call = call or system_call()
        host.check()
        root = host.cgroup_root()
        self._records = Records(host.hierarchies)
        with ExitStack() as held:
            try:
                self._object = kernel = BpfObject(read_built(), call=call, entries={"ring": ring_bytes})
                held.callback(kernel.close)
                self._set_majors()
                self._lost = held.enter_context(Counters(kernel.maps["bss"]))
                self._ring = held.enter_context(Ring(kernel.maps["ring"], ring_bytes))
                # ends first: nobody is remembered whose end went by before it was listened for
                for program in reversed(_TRACEPOINTS):
                    kernel.attach_tracepoint(program)
                kernel.attach_cgroup("on_open", root)
                self._files = kernel.attach_iterator("on_file")
            except OSError as error:
                raise host.refusal(error) from error
            self._held = held.pop_all()

    def begin(self) -> None:
        """Nothing: events wait in the kernel, and none is so urgent."""

    def catch_up(self) -> None:
        """Nothing: what has happened lies in the ring."""

    def wait(self, timeout_s: float) -> bool:
        """Whether events are there to be read, after this long at most."""
        return self._ring.wait(timeout_s)

    def read(self) -> Sequence[ProcessEvent]:
        """What has happened up to now, in the kernel's order; what a process is just writing comes next time."""
        found: list[ProcessEvent] = []
        ring, events = self._ring, self._records.events
        until = ring.produced()
        while places := ring.pending(until):
            found += events(ring.memory, places)
            ring.release()
        return found

    def lost(self) -> int:
        """Events that found no room, and those that the kernel left out because one was being told on that CPU."""
        return self._lost.first() + sum(self._object.missed(program) for program in _TRACEPOINTS)

    def snapshot(self) -> Sequence[ProcessEvent]:
        """HOLD events of every process that has such a device node open now."""
        self._set_majors()
        return [self._with_args(event) for event in self._records.holds(self._object.iterate(self._files))]

    def close(self) -> None:
        """Let the kernel's side go; the source is not used again."""
        self._held.close()

    def _set_majors(self) -> None:
        """Modules loaded meanwhile bring nodes with new numbers."""
        given = self._given_majors
        majors = self._host.nvidia_majors() if given is None else frozenset(given)
        for number in majors - self._majors:
            self._object.put("majors", number)
        for number in self._majors - majors:
            self._object.drop("majors", number)
        self._majors = majors

    def _with_args(self, event: ProcessEvent) -> ProcessEvent:
        """The command line from ``/proc``, where that is still the same process."""
        if event.program is None:
            return event
        try:
            with (self._host.proc / str(event.pid) / "cmdline").open("rb") as file:
                args = file.read(procfs.LARGEST_READ)
        except OSError:
            return event
        if procfs.start_ticks(event.pid, proc=self._host.proc) != event.start_ticks:
            return event
        return event._replace(program=event.program._replace(args=args))
