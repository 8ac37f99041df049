"""What nvidia-smi would print of the fake driver's state: its accounted processes as CSV, everything as XML.

Run as a program it is that ``nvidia-smi``: it prints the XML of the state file it is given, as it is now.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from fake_driver.fake_driver import MIB, Line, lines_of

TESTS = Path(__file__).resolve().parents[1]
CSV_HEADER = (
    "timestamp, gpu_name, gpu_bus_id, gpu_serial, gpu_uuid, pid, gpu_utilization [%], mem_utilization [%], "
    "max_memory_usage [MiB], time [ms]"
)


def csv(lines: list[Line], at_us: int) -> str:
    """``--query-accounted-apps=... --format=csv``: a running row says 0 ms, and no row says when it began."""
    stamp = _moment(at_us).strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
    names = {line[1]: (line[2], line[4]) for line in lines if line[0] == "gpu"}
    rows = [CSV_HEADER]
    for pid, gpu, ms, peak, percent, memory_percent, _ in _accounted(lines):
        product, bus = names[gpu]
        rows.append(
            f"{stamp}, {product}, {bus}, [N/A], {gpu}, {pid}, {percent} %, {memory_percent} %, {peak} MiB, {ms} ms"
        )
    return "\n".join(rows) + "\n"


def xml(lines: list[Line], at_us: int) -> str:
    """``-q -x``, the parts that matter."""
    gpus = [line for line in lines if line[0] == "gpu"]
    parts = [
        '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n<nvidia_smi_log>',
        f"<timestamp>{_moment(at_us).strftime('%a %b %d %H:%M:%S %Y')}</timestamp>",
        f"<driver_version>{lines[0][1]}</driver_version><attached_gpus>{len(gpus)}</attached_gpus>",
    ]
    for _, uuid, product, memory_mib, bus, accounting, _mig in gpus:
        alive = "".join(
            f"<process_info><gpu_instance_id>N/A</gpu_instance_id><compute_instance_id>N/A</compute_instance_id>"
            f"<pid>{line[2]}</pid><type>{line[3]}</type><process_name>[N/A]</process_name>"
            f"<used_memory>{int(line[4]) // MIB} MiB</used_memory></process_info>\n"
            for line in lines
            if line[0] == "process" and line[1] == uuid
        )
        accounted = "".join(
            f"<accounted_process_info><pid>{pid}</pid><gpu_util>{percent} %</gpu_util>"
            f"<memory_util>{memory_percent} %</memory_util><max_memory_usage>{peak} MiB</max_memory_usage>"
            f"<time>{ms} ms</time><is_running>{running}</is_running></accounted_process_info>\n"
            for pid, gpu, ms, peak, percent, memory_percent, running in _accounted(lines)
            if gpu == uuid
        )
        parts.append(
            f'<gpu id="{bus}"><product_name>{product}</product_name><uuid>{uuid}</uuid>'
            f"<mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>"
            f"<accounting_mode>{'Enabled' if accounting == '1' else 'Disabled'}</accounting_mode>"
            f"<fb_memory_usage><total>{memory_mib} MiB</total></fb_memory_usage>"
            f"<processes>{alive}</processes><accounted_processes>{accounted}</accounted_processes></gpu>"
        )
    return "\n".join((*parts, "</nvidia_smi_log>\n"))


def install(folder: Path, state: Path) -> Path:
    """A program called ``nvidia-smi`` that prints the driver's state at each call; returns its folder, for PATH."""
    programs = folder / "bin"
    programs.mkdir()
    program = programs / "nvidia-smi"
    program.write_text(f"#!/bin/sh\nPYTHONPATH='{TESTS}' exec '{sys.executable}' -S -m e2e.smi '{state}'\n")
    program.chmod(0o755)
    return programs


def _accounted(lines: list[Line]) -> list[tuple[str, str, str, int, str, str, int]]:
    """Finished rows, then running ones: pid, gpu, ms, MiB, percent, memory percent, running."""
    rows = [
        (line[2], line[1], line[4], int(line[5]) // MIB, line[6], line[7], 0) for line in lines if line[0] == "dead"
    ]
    rows += [(line[2], line[1], "0", int(line[4]) // MIB, line[5], line[6], 1) for line in lines if line[0] == "live"]
    return rows


def _moment(at_us: int) -> datetime:
    return datetime.fromtimestamp(at_us // 1_000_000, tz=UTC)


if __name__ == "__main__":
    sys.stdout.write(xml(lines_of(Path(sys.argv[1]).read_text()), time.time_ns() // 1000))
