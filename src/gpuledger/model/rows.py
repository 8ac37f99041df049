"""The rows of the ledger: what evidence says, what was recorded, and who wrote it.

Every row is a frozen value without behaviour. ``writer`` and ``number`` are given by the ledger when
the row is appended and form its reference, ``KIND:WRITER/NUMBER``; they take no part in equality,
so that the same evidence read twice is equal. Absent readings are :class:`Missing`, stored as NULL.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpuledger.model.missing import Missing


def as_content(*figures: int | Missing) -> tuple[str, ...]:
    """The figures of an accounting row as text: what tells it where no start time does; ``-`` for an absent one."""
    return tuple("-" if isinstance(figure, Missing) else str(figure) for figure in figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What all rows share.

    Args:
        writer: the hash chain it belongs to, ``HOST.ROLE``; empty until appended.
        number: its place in that chain, from 1; 0 until appended.
    """

    kind: ClassVar[str] = ""

    writer: str = field(default="", compare=False)
    number: int = field(default=0, compare=False)

    @property
    def ref(self) -> str:
        """``KIND:WRITER/NUMBER``, what ``explain`` takes."""
        return f"{self.kind}:{self.writer}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvent(Row):
    """A device seen, changed or lost. Key: (host, device, event, at).

    Args:
        host: machine name.
        device: GPU UUID, or MIG instance UUID; never an index.
        at_us: when it was read, microseconds UTC.
        event: ``seen``, ``changed`` or ``lost``.
        class_name: what the device is for accounting, e.g. ``A100-SXM4-40GB/1g.5gb``.
        product: the driver's product name as it stands.
        memory_mib: device memory in MiB.
        parent: for a MIG instance the UUID of its GPU, else empty.
        profile: for a MIG instance its profile such as ``1g.5gb``, else empty.
        pci_bus_id: PCI address, may be empty; moves with slots.
        driver_version: driver version text, may be empty.
        method: how it was read: ``nvml``, ``nvidia-smi`` or ``simulated``.
    """

    kind: ClassVar[str] = "device"

    host: str
    device: str
    at_us: int
    event: str
    class_name: str
    product: str
    memory_mib: int | Missing
    parent: str = ""
    profile: str = ""
    pci_bus_id: str = ""
    driver_version: str = ""
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch(Row):
    """A span in which one source looked. Key: (host, device, source, method, since, until, status).

    Args:
        host: machine name.
        device: GPU UUID; empty when the source watches the whole host (process naming).
        source: ``driver`` (accounting and living lists), ``process`` (naming), or ``controller``: a control plane
            that is alive, under its name as host.
        method: ``nvml``, ``nvidia-smi``, ``import``, ``simulated`` for drivers; ``ebpf``, ``connector`` or
            ``poll`` for naming; ``heartbeat`` of a controller, ``sql`` for where a query's cursor stood.
        interval_ms: time between two looks in ms; 0 where it looked once.
        since_us: start of the span, microseconds UTC; equal to ``until_us`` for a single look.
        until_us: end of the span.
        status: ``ok``; ``idle`` when it is proven that nothing ran; or an ``UnknownReason`` that holds for the
            whole span.
        readings: number of looks in the span.
        new_rows: finished processes found in the span that were not known before.
        living: most contexts seen alive at one look.
        detail: one sentence for the journal; may be empty.
    """

    kind: ClassVar[str] = "watch"

    host: str
    device: str
    source: str
    method: str
    interval_ms: int
    since_us: int
    until_us: int
    status: str
    readings: int = 1
    new_rows: int = 0
    living: int = 0
    detail: str = ""

    def __post_init__(self) -> None:
        if not self.status or self.since_us > self.until_us:
            raise ValueError(f"a watch says ok or a reason, and ends after it begins: {self.status!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity(Row):
    """One process, as read while it lived. Key: (host, boot_id, pid, start_ticks, exec_number, seen_at).

    The process itself is (host, boot_id, pid, start_ticks); a later row of the same process proves
    that it was still alive then, and a higher ``exec_number`` that it became another program.

    Args:
        host: machine name.
        boot_id: the kernel's boot id; empty when the source does not know it (a pid map).
        pid: process id in the init pid namespace.
        start_ticks: field 22 of ``/proc/PID/stat``; for a pid map its line number.
        exec_number: 0 for the program first seen, then counted up.
        started_at_us: wall-clock start; Missing when the source does not know it (a pid map).
        seen_at_us: when it was read, alive.
        method: ``ebpf``, ``connector``, ``poll``, ``pid-map`` or ``nvidia-smi``.
        grade: ``kernel`` (unit, cgroup, uid read from the kernel) or ``claimed`` (somebody's word).
        text_key: key of its :class:`IdentityText` in the side table; empty for a process that an event told of and
            that ended before it could be read.
    """

    kind: ClassVar[str] = "identity"

    host: str
    boot_id: str
    pid: int
    start_ticks: int
    exec_number: int = 0
    started_at_us: int | Missing
    seen_at_us: int
    method: str
    grade: str
    text_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRecord(Row):
    """One finished process on one device, as the driver settled it. Key: (host, device, pid, natural_key).

    Args:
        host: machine name.
        device: GPU UUID.
        pid: process id as the driver gives it.
        started_at_us: first device open by that pid on that GPU; Missing from CSV and XML.
        context_ms: end minus start, ms, as the driver settled it.
        peak_memory_mib: high-water mark in MiB; 0 is not evidence of no use.
        gpu_percent: mean SM utilisation, whole percent; 0 is not evidence of no use.
        memory_percent: mean memory-bandwidth utilisation, whole percent.
        read_at_us: when the row was read, so it had ended by then.
        method: ``nvml``, ``nvidia-smi``, ``import`` or ``simulated``.
        driver_epoch: names one load of the driver where known (boot id and reload count), else empty.
    """

    kind: ClassVar[str] = "driver"

    host: str
    device: str
    pid: int
    started_at_us: int | Missing
    context_ms: int
    peak_memory_mib: int | Missing
    gpu_percent: int | Missing
    memory_percent: int | Missing
    read_at_us: int
    method: str
    driver_epoch: str = ""

    @property
    def natural_key(self) -> str:
        """What makes the row itself: its start; without one its content, driver load, and when it was read.

        An earlier reading of the same content is a tighter bound on when the row had ended, so it is a
        row of its own; measuring counts the content once.
        """
        if isinstance(self.started_at_us, Missing):
            return f"content:{self.driver_epoch}:{':'.join(self.content)}:{self.read_at_us}"
        return f"start:{self.started_at_us}"

    @property
    def content(self) -> tuple[str, ...]:
        """The figures of the row as text, the same from every source of it."""
        return as_content(self.context_ms, self.peak_memory_mib, self.gpu_percent, self.memory_percent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting(Row):
    """One living context over a span of looking. Key: (host, device, pid, boot_id, start_ticks, since, until, samples).

    Consecutive sightings of one context follow each other without overlap; a gap between them means
    that nobody looked. The first begins at the driver's start of the context where that is known.

    Args:
        host: machine name.
        device: GPU or MIG instance UUID.
        pid: process id.
        boot_id: boot id of the process identity; empty when the source does not know it.
        start_ticks: start of the process identity; 0 when ``/proc`` could not be read.
        context_started_at_us: the driver's start of this context; Missing when not accounted.
        since_us: start of the span.
        until_us: last look of the span at which the context was alive.
        accounted: whether the driver's accounting list holds it: ``yes``, ``no``, or ``unknown``
            (accounting off, or only one reading so far).
        samples: number of looks in the span.
        memory_mib_ms: memory held, integrated over the span, in MiB x ms.
        memory_ms: the part of the span that memory samples cover, ms; 0 when memory was not readable.
        peak_memory_mib: highest memory sample, MiB; Missing when not readable.
        busy_ms: SM activity, percent integrated over the span, in ms.
        busy_covered_ms: the part of the span that utilisation samples cover, ms; 0 when it was not readable.
        gone_at_us: the look that first missed the context; Missing while it is alive.
        process_died: 1 when at ``gone_at_us`` the process itself was gone too, else 0.
        method: ``nvml``, ``nvidia-smi``, ``import`` or ``simulated``; ``ebpf`` for a context that the driver is
            known to have lost the row of, from the process's open of the device to its exit.
    """

    kind: ClassVar[str] = "sighting"

    host: str
    device: str
    pid: int
    boot_id: str
    start_ticks: int
    context_started_at_us: int | Missing
    since_us: int
    until_us: int
    accounted: str = "unknown"
    samples: int = 1
    memory_mib_ms: int = 0
    memory_ms: int = 0
    peak_memory_mib: int | Missing
    busy_ms: int = 0
    busy_covered_ms: int = 0
    gone_at_us: int | Missing
    process_died: int = 0
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRecord(Row):
    """Subject x meter x UTC hour x device. Immutable. Key: (meter, hour, host, device, subject, context).

    Args:
        meter: name of the meter; ``quantity`` is in its unit.
        hour_us: start of the UTC hour.
        host: machine name.
        device: GPU or MIG instance UUID.
        subject: key of the identity text, or ``unattributed:CAUSE``.
        context: what of it the driver had settled when it was recorded: ``settled``; ``gone`` for
            contexts that ended without a driver row; ``PID@START_US`` for one context still open
            (``PID@?TICKS`` where the driver gives no start), so that a later settlement can be seen
            by joining the driver's rows. Always ``sampled`` for ``gpu.memory`` and ``gpu.busy``, ``reserved``
            for reserved time, whose device is ``placement:KEY``.
        quantity: whole units of the meter.
        evidence_count: number of evidence rows behind it.
        evidence_hash: first 16 hex digits of the SHA-256 over their references, sorted, one a line.
        recorded_at_us: when the pass ran.
    """

    kind: ClassVar[str] = "record"

    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    context: str
    quantity: int
    evidence_count: int
    evidence_hash: str
    recorded_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCorrection(Row):
    """A signed delta to a recorded hour. Key: (meter, hour, host, device, subject, correction_number).

    Args:
        meter, hour_us, host, device, subject: as in :class:`UsageRecord`.
        correction_number: 1, 2, ... within that key.
        delta: whole units, may be negative, never 0.
        reason: kebab-case: ``late-evidence``, ``late-name`` or ``clock-step``; what ``correct`` books adds its
            reason and who decided it: ``late-evidence: TEXT (NAME)``.
        evidence_count, evidence_hash: of the evidence that now stands behind the hour.
        recorded_at_us: when the pass ran.
    """

    kind: ClassVar[str] = "correction"

    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    correction_number: int
    delta: int
    reason: str
    evidence_count: int
    evidence_hash: str
    recorded_at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass(Row):
    """One metering pass and what it covered. Key: (writer, number).

    Args:
        at_us: the time it was run for (``--now``).
        covered_from_us: first hour it closed, start; equal to ``covered_until_us`` when none was new.
        covered_until_us: end of the last hour it closed.
        evidence_marks: JSON object, writer to the highest number it had seen, keys sorted.
        records_added: rows inserted.
        corrections_added: corrections booked.
    """

    kind: ClassVar[str] = "pass"

    at_us: int
    covered_from_us: int
    covered_until_us: int
    evidence_marks: str
    records_added: int
    corrections_added: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyVersion(Row):
    """An applied policy document. Key: (version).

    Args:
        version: 1, 2, ...
        effective_from_us: from when its owners hold.
        applied_at_us: when it was applied.
        document: the YAML text as given.
        document_hash: SHA-256 of the text, hex.
    """

    kind: ClassVar[str] = "policy"

    version: int
    effective_from_us: int
    applied_at_us: int
    document: str
    document_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(Row):
    """The heads of all hash chains over a span. Key: (previous_root).

    Args:
        at_us: when it was made.
        heads: JSON object, writer to [last number, link hash], keys sorted.
        previous_root: root of the seal before, or 64 zeros.
        root: SHA-256 hex over previous root, time and heads.
    """

    kind: ClassVar[str] = "seal"

    at_us: int
    heads: str
    previous_root: str
    root: str
