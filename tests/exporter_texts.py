"""Scrapes as exporters of several releases would give them: made by hand, for what public files lack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

UUID = "GPU-5a3c1f2e-1111-2222-3333-444455556666"
OTHER_UUID = "GPU-9b1d0c00-7777-8888-9999-aaaabbbbcccc"

UTIL = "DCGM_FI_DEV_GPU_UTIL"
USED = "DCGM_FI_DEV_FB_USED"
POWER = "DCGM_FI_DEV_POWER_USAGE"
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
ENGINE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


def escaped(value: str) -> str:
    """A label's value as the text format wants it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def row(metric: str, value: object, **labels: str) -> str:
    """One sample."""
    block = ",".join(f'{name}="{escaped(each)}"' for name, each in labels.items())
    return f"{metric}{{{block}}} {value}"


@dataclass
class Exporter:
    """One node's exporter, row by row.

    Args:
        host: its host label.
        spelled: the host label's name.
        lines: samples by metric, in the order in which the metrics came.
    """

    host: str = "node-1"
    spelled: str = "Hostname"
    extra: Mapping[str, str] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)

    def device(self, gpu: int = 0, uuid: str = UUID, **figures: object) -> Exporter:
        """A row of the device itself for each figure: ``device(util=83, used=30000)``."""
        return self._rows(figures, gpu, uuid, {})

    def pod(
        self, name: str, gpu: int = 0, uuid: str = UUID, labels: Mapping[str, str] | None = None, **figures: object
    ) -> Exporter:
        """A row of a pod (``namespace/name``) for each figure."""
        namespace, _, pod = name.rpartition("/")
        own = {"container": "main", "namespace": namespace, "pod": pod} | dict(labels or {})
        return self._rows(figures, gpu, uuid, own)

    def instance(self, number: int, profile: str = "1g.5gb", pod: str = "", **figures: object) -> Exporter:
        """A row of a MIG instance for each figure."""
        own = {"GPU_I_PROFILE": profile, "GPU_I_ID": str(number)}
        namespace, _, name = pod.rpartition("/")
        return self._rows(figures, 0, UUID, own | ({"namespace": namespace, "pod": name} if pod else {}))

    def text(self) -> str:
        """All of it, with the description of each metric."""
        told: list[str] = []
        for metric, rows in self.lines.items():
            told += [f"# HELP {metric} As the exporter describes it.", f"# TYPE {metric} gauge", *rows]
        return "\n".join(told) + "\n"

    def _rows(self, figures: Mapping[str, object], gpu: int, uuid: str, own: Mapping[str, str]) -> Exporter:
        metrics = {"util": UTIL, "used": USED, "power": POWER, "energy": ENERGY, "engine": ENGINE}
        base = {"gpu": str(gpu), "UUID": uuid, "device": f"nvidia{gpu}", "modelName": "NVIDIA A100"}
        for short, value in figures.items():
            labels = {**base, self.spelled: self.host, **own, **self.extra}
            self.lines.setdefault(metrics[short], []).append(row(metrics[short], value, **labels))
        return self


def mapped() -> Exporter:
    """An exporter after #594 with process mapping: two pods of one GPU, each with its own, the device beside them."""
    return (
        Exporter()
        .device(util=83, used=30_500, power=212, engine=0.8)
        .pod("team-a/train", util=71, used=20_000, power=212, engine=0.8, labels={"pod_uid": "u1", "vgpu": "0"})
        .pod("team-b/serve", util=12, used=10_000, power=212, engine=0.8, labels={"pod_uid": "u2", "vgpu": "1"})
    )


def duplicated(pods: Iterable[str] = ("team-a/one", "team-b/two", "team-c/three")) -> Exporter:
    """An exporter before #594 with virtual GPUs (#587, #642): each pod has the device's figures, the device no row."""
    exporter = Exporter()
    for slot, pod in enumerate(pods):
        exporter.pod(pod, util=71, used=30_500, power=212, engine=0.714, labels={"vgpu": str(slot)})
    return exporter


def arbitrary() -> Exporter:
    """An exporter without virtual GPUs on a shared GPU (#307): one of its pods on the device's own row."""
    return Exporter().pod("default/gpu-pod-vkkcb", util=64, used=12_000, power=61, engine=0.61)
