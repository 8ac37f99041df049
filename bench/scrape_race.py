"""The race of a scrape: ``audit exporter`` over 100,000 lines, and prometheus_client's parser alone over the same."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from gpuledger.audit.exporter import audit_exporter
from gpuledger.model.findings import AuditReport, Written

LINES = 100_000
MOST_RATIO = 1.5
RUNS = 3
"""Of each contender, in turn: prometheus_client needs ten seconds for one."""

_METRICS = (
    "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK", "DCGM_FI_DEV_MEMORY_TEMP", "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL",
    "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_RESERVED",
    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_VGPU_LICENSE_STATUS", "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES",
    "DCGM_FI_PROF_PCIE_RX_BYTES",
)  # fmt: skip
"""What dcgm-exporter's default file of counters has switched on."""

PODS = 4
"""On each device, beside its own row."""


def scrape(lines: int = LINES) -> str:
    """A cluster's figures in one text, as a federating Prometheus gives them: each device shared by four pods.

    Args:
        lines: about how many; each metric has two more that describe it.
    """
    chance = random.Random(7)
    told: list[str] = []
    devices = lines // (len(_METRICS) * (PODS + 1))
    for metric in _METRICS:
        told += [f"# HELP {metric} As the exporter describes it.", f"# TYPE {metric} gauge"]
        for device in range(devices):
            index = device % 8
            block = (
                f'gpu="{index}",UUID="GPU-7a2e92f2-be71-d37e-a744-{device:012x}",pci_bus_id="00000000:{index:02X}:00.0",'
                f'device="nvidia{index}",modelName="NVIDIA H100 80GB HBM3",Hostname="node-{device // 8}",'
                f'DCGM_FI_DRIVER_VERSION="570.86.15"'
            )
            told.append(f"{metric}{{{block}}} {chance.randrange(100)}")
            told += [
                f'{metric}{{{block},container="main",namespace="team-{pod}",pod="train-{device}-{pod}",'
                f'pod_uid="7099682b-a20d-2bcc-74ab-{device:012x}",vgpu="{pod}"}} {chance.randrange(100)}'
                for pod in range(PODS)
            ]
    return "\n".join(told) + "\n"


def race(say: Callable[[str], None]) -> dict[str, Any]:
    """Both contenders in turn; CPU seconds, their ratio, and whether both read as many samples.

    Args:
        say: prints one line.
    """
    text = scrape()
    lines = text.count("\n")
    theirs, ours = [], []
    report, samples = None, 0
    for _ in range(RUNS):
        began = time.process_time()
        samples = sum(len(family.samples) for family in text_string_to_metric_families(text))
        theirs.append(time.process_time() - began)
        began = time.process_time()
        report = audit_exporter(Written(path="scrape", text=text))
        ours.append(time.process_time() - began)
    ratio = statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))
    broken = []
    if ratio > MOST_RATIO:
        broken.append(f"the audit of a scrape takes {ratio:.2f} times prometheus_client's parser alone")
    if not _agree(report, samples):
        broken.append("the audit and prometheus_client read different numbers of samples")
    say(f"scrape: {lines:,} lines, {len(text) / 1e6:.0f} MB, {samples:,} samples")
    say(f"  prometheus_client's parser alone  {statistics.median(theirs):7.2f} s of CPU")
    say(f"  audit exporter, all of it         {statistics.median(ours):7.2f} s of CPU")
    say(f"  ratio {ratio:.2f}, limit {MOST_RATIO}")
    return {"lines": lines, "samples": samples, "parser_s": theirs, "audit_s": ours, "ratio": ratio, "broken": broken}


def _agree(report: AuditReport | None, samples: int) -> bool:
    return report is not None and dict(report.facts)["samples"] == f"{samples:,}" and not report.unread
