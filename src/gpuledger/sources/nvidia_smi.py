"""The driver as nvidia-smi tells it: dumps that people kept, and the fallback where NVML cannot be loaded.

:func:`parse` is pure: the text of a dump in, readings out. :class:`NvidiaSmiSource` runs the program.
The formats: ``nvidia_smi_csv``, ``nvidia_smi_xml``, ``nvidia_smi_log``; which outputs a text holds:
``nvidia_smi_blocks``; which of them are one look: ``nvidia_smi_looks``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo

from gpuledger.errors import BadInput, Unavailable
from gpuledger.model.missing import Missing
from gpuledger.model.problem import Problem
from gpuledger.model.readings import Reading
from gpuledger.sources.nvidia_smi_blocks import Block, find_blocks
from gpuledger.sources.nvidia_smi_csv import parse_rows
from gpuledger.sources.nvidia_smi_header import looks_like_rows
from gpuledger.sources.nvidia_smi_log import parse_list, parse_log
from gpuledger.sources.nvidia_smi_looks import group, read_look
from gpuledger.sources.nvidia_smi_names import DeviceNames
from gpuledger.sources.nvidia_smi_outputs import MOST_PROBLEMS, Kind, Output, Rejected
from gpuledger.sources.nvidia_smi_xml import parse_document

PATIENCE_S = 30
"""nvidia-smi without persistence mode loads the driver first, which takes up to 15 s on eight GPUs."""

HINT = (
    "what is understood: nvidia-smi -q -x; nvidia-smi -q; nvidia-smi "
    "--query-accounted-apps=timestamp,gpu_uuid,pid,gpu_util,mem_util,max_memory_usage,time --format=csv"
)


def parse(
    text: str,
    *,
    path: str,
    zone: tzinfo | None,
    taken_at_us: int | Missing,
    device: str = "",
    method: str = "import",
) -> list[Reading]:
    """The looks at a machine that a dump holds, in the order of the file.

    Args:
        text: CSV, XML or log text of nvidia-smi, or many of them with noise between.
        path: the file as the user named it, for messages.
        zone: of the local times in it; None when not given.
        taken_at_us: when it was taken, microseconds UTC, for dumps without times.
        device: UUID for rows that name no device; may be empty.
        method: of the readings.

    Raises:
        BadInput: nothing in it is understood (``not-nvidia-smi``, ``no-header``, ``columns-missing``,
            ``broken-xml``, ``not-text``, ``xml-entities``), or it is of ``two-machines``.
        Misconfigured: ``zone-needed`` when there are local times and no zone.
    """
    text = _checked(text, path)
    outputs: list[Output] = []
    rejections: list[Rejected] = []
    for block in find_blocks(text):
        found = block if isinstance(block, Rejected) else _understood(block, path)
        if isinstance(found, Rejected):
            rejections += [found] if len(rejections) < MOST_PROBLEMS else []
        else:
            outputs += found
    looks = group(outputs)
    if not looks:
        raise _not_understood(text, path, rejections, is_known=bool(outputs))
    names = DeviceNames.of(outputs, given=device, path=path)
    readings = [read_look(look, names, path=path, zone=zone, taken_at_us=taken_at_us, method=method) for look in looks]
    refused = tuple(Problem(code=one.code, message=one.message, where=f"{path}:{one.line}") for one in rejections)
    readings[0] = replace(readings[0], problems=(*readings[0].problems, *refused))
    return readings


def _understood(block: Block, path: str) -> Sequence[Output] | Rejected:
    line, section = block.line, block.section
    if block.header is not None:
        return list(parse_rows(block.header, block.lines, path=path, line=line, section=section))
    if block.kind is Kind.LOG:
        return [parse_log(block.lines, path=path, line=line, section=section)]
    if block.kind is Kind.LIST:
        return [parse_list(block.lines, line=line, section=section)]
    if not block.whole:
        return _broken("the XML ends in the middle of a document", line)
    try:
        return [parse_document(block.text, path=path, line=line, section=section)]
    except ValueError as problem:
        return _broken(str(problem), line)


def _broken(message: str, line: int) -> Rejected:
    hint = "export it again: nvidia-smi -q -x > FILE"
    return Rejected(code="broken-xml", message=message, hint=hint, line=line)


def _checked(text: str, path: str) -> str:
    """The text with ``\\n`` line ends, once it is seen to be text."""
    for mark, code, message in (
        ("\0", "not-text", "a NUL byte: this is a binary file"),
        ("<!ENTITY", "xml-entities", "the XML declares entities, which nvidia-smi never does; it is not read"),
    ):
        if (place := text.find(mark)) >= 0:
            raise BadInput(code, message, path=path, line=text.count("\n", 0, place) + 1, hint=HINT)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise BadInput("not-text", "characters that are not text", path=path, line=line, hint=HINT) from None
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n").replace("\r", "\n")
    return text


def _not_understood(text: str, path: str, rejections: Sequence[Rejected], *, is_known: bool) -> BadInput:
    if rejections:
        first = rejections[0]
        return BadInput(first.code, first.message, path=path, line=first.line, hint=first.hint)
    if is_known:
        message = "it is nvidia-smi's, but tells neither processes nor the accounting mode"
        return BadInput("not-nvidia-smi", message, path=path, hint=HINT)
    for number, line in enumerate(text.split("\n", 200)[:200], start=1):
        if not line.startswith("#") and looks_like_rows(line):
            message = "rows without their header; which column is which cannot be known"
            return BadInput("no-header", message, path=path, line=number, hint="export it again without noheader")
    return BadInput("not-nvidia-smi", "no accounting, process list or mode in it is understood", path=path, hint=HINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program left: exit status and its two streams as text."""

    status: int
    stdout: str
    stderr: str


Run = Callable[[Sequence[str]], Ran]
"""Runs a command, bounded in time. Raises Unavailable when it cannot be run."""


def run_program(command: Sequence[str]) -> Ran:
    """Run a command for :data:`PATIENCE_S` at most, in the C locale.

    Raises:
        Unavailable: ``driver-unreachable`` when it is not there, may not be run, or does not end.
    """
    hint = "gpuledger doctor"
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program with arguments of our own, no shell
            ["/usr/bin/env", "LC_ALL=C", *command], capture_output=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        message = f"{command[0]} did not answer within {PATIENCE_S} s"
        raise Unavailable("driver-unreachable", message, hint=hint) from None
    except OSError as error:
        raise Unavailable("driver-unreachable", f"{command[0]}: {error.strerror}", hint=hint) from None
    stdout, stderr = (stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr))
    if done.returncode in (126, 127):  # env(1): found but not run, not found
        raise Unavailable("driver-unreachable", f"{command[0]} cannot be run: {_said(stderr)}", hint=hint)
    return Ran(status=done.returncode, stdout=stdout, stderr=stderr)


class NvidiaSmiSource:
    """The agent's fallback: one run of nvidia-smi a look. Gives no start times; what runs is told.

    Args:
        run: how programs are run; tests give their own.
    """

    method = "nvidia-smi"

    def __init__(self, run: Run = run_program) -> None:
        self._run = run

    def read(self, now_us: int) -> Reading:
        """One look at all devices, at ``now_us``.

        Raises:
            Unavailable: ``driver-unreachable`` with the program's own words.
        """
        ran = self._run(("nvidia-smi", "-q", "-x"))
        try:
            # the program's own local time is not needed: now_us is the time of the look
            readings = parse(ran.stdout, path="nvidia-smi -q -x", zone=UTC, taken_at_us=now_us, method=self.method)
        except BadInput as error:
            said = _said(ran.stderr) or _said(ran.stdout) or error.message
            message = f"nvidia-smi answers with status {ran.status}: {said}"
            raise Unavailable("driver-unreachable", message, hint="gpuledger doctor") from None
        reading = replace(readings[-1], at_us=now_us)
        if ran.status:
            # one lost GPU makes the status non-zero, and the others are still told
            message = f"nvidia-smi answered with status {ran.status}: {_said(ran.stderr) or 'no reason given'}"
            problem = Problem(code="driver-complains", message=message, where="nvidia-smi -q -x")
            reading = replace(reading, problems=(*reading.problems, problem))
        return reading

    def enable_accounting(self, uuid: str) -> None:
        """Switch the driver's accounting on for one device. Needs root.

        Raises:
            Unavailable: ``accounting-not-enabled`` with the program's own words.
        """
        ran = self._run(("nvidia-smi", "-i", uuid, "-am", "1"))
        if ran.status:
            message = f"accounting of {uuid} could not be enabled: {_said(ran.stderr) or _said(ran.stdout)}"
            raise Unavailable("accounting-not-enabled", message, hint="sudo nvidia-smi -am 1")


def _said(stream: str) -> str:
    """The first line with words, shortened."""
    return next((line.strip()[:200] for line in stream.splitlines() if line.strip()), "")
