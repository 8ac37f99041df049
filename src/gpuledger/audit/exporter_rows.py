"""Samples laid out by device or MIG instance, metric, and pod: what every judgement over a scrape reads.

In: samples. Out: units with their figures; which labels stand where. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from gpuledger.audit.exporter_words import (
    HOST_LABELS,
    POD_LABELS,
    SCRAPED_LABELS,
    blank_of,
    canonical,
    is_exporter_pod,
    is_named,
    number,
)
from gpuledger.audit.exposition import Exposition, Labels, Sample


class Pod(NamedTuple):
    """A pod as the labels name it."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


_MOST_ORDERS = 500
"""Orders of labels that are merged; every exporter has one or two, and merging costs their number squared."""

NOBODY = Pod("", "")
"""The row of the device itself."""


@dataclass(slots=True, kw_only=True)
class Unit:
    """One device, or one MIG instance of it, as the labels tell them apart.

    Args:
        uuid: of the device; empty where no label has it.
        host: where it is; empty where no label has it.
        gpu: its index.
        instance: of MIG (``GPU_I_ID``); empty for the whole device.
        profile: of the instance (``GPU_I_PROFILE``).
        figures: metric by its present name, then pod (:data:`NOBODY` for the device's own row), then its samples.
        device: what tells its device from others.
        name: what people call it: its UUID, else its index and host, and its instance.
        pods: every pod on any of its rows, sorted.
    """

    uuid: str
    host: str
    gpu: str
    instance: str = ""
    profile: str = ""
    figures: dict[str, dict[Pod, list[Sample]]] = field(default_factory=dict)
    device: tuple[str, str, str] = field(init=False)
    name: str = field(init=False)
    pods: tuple[Pod, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        host = f" of {self.host}" if self.host else ""
        named = is_named(self.uuid)
        self.device = (self.uuid, "", "") if named else ("", self.host, self.gpu)
        device = self.uuid if named else f"GPU {self.gpu}{host}" if self.gpu else f"no GPU{host}"
        self.name = f"{device} instance {self.instance} ({self.profile})" if self.instance else device

    def close(self) -> None:
        """No sample is added any more: its pods are known."""
        self.pods = tuple(sorted({pod for rows in self.figures.values() for pod in rows if pod != NOBODY}))

    def values(self, metric: str, pod: Pod) -> frozenset[Decimal]:
        """The figures of one metric on one pod's rows, blanks and NaN left out."""
        return frozenset(figure for figure, _ in self.numbers(metric, pod))

    def numbers(self, metric: str, pod: Pod) -> Iterator[tuple[Decimal, Sample]]:
        """The same with their samples, one for each row."""
        for sample in self.figures.get(metric, {}).get(pod, ()):
            figure = number(sample.value)
            if figure is not None and figure.is_finite() and not blank_of(metric, figure):
                yield figure, sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One text, laid out.

    Args:
        units: devices and instances in a fixed order, whatever the order of the lines.
        others: samples that are no figures of dcgm-exporter.
        pod_label: which label names the pod of a row; empty where none does.
        exporter_pods: pods that a ``pod`` label names and that are the exporter itself.
        labels: names of the labels of dcgm-exporter's samples, in the order of the text.
        repeated: series that stand more than once, with how often; the same labels in any order are one series.
        series: how many there are.
        queried: whether it went through Prometheus, where a query may have left rows out.
    """

    units: tuple[Unit, ...]
    others: tuple[Sample, ...]
    pod_label: str
    exporter_pods: tuple[str, ...]
    labels: tuple[str, ...]
    repeated: tuple[tuple[Sample, int], ...]
    series: int
    queried: bool

    @property
    def samples(self) -> int:
        """How many are figures of dcgm-exporter."""
        return sum(len(rows) for unit in self.units for pods in unit.figures.values() for rows in pods.values())

    @property
    def devices(self) -> int:
        """How many devices there are; instances of one are one."""
        return len({unit.device for unit in self.units if unit.uuid or unit.gpu})

    @property
    def instances(self) -> int:
        """How many MIG instances there are."""
        return sum(1 for unit in self.units if unit.instance)

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod on any row, sorted."""
        return tuple(sorted({pod for unit in self.units for pod in unit.pods}))


@dataclass(slots=True)
class _Place:
    """Where the samples of one set of labels belong."""

    series: str
    pod: Pod
    unit: Unit


def lay_out(exposition: Exposition) -> Rows:
    """The samples of a text by device, metric and pod."""
    return _Layout(exposition).rows()


class _Layout:
    def __init__(self, exposition: Exposition) -> None:
        self._samples = exposition.samples
        self._queried = exposition.queried
        self._units: dict[tuple[str, ...], Unit] = {}
        self._places: dict[int, _Place] = {}
        self._exporters: set[str] = set()
        self._others: list[Sample] = []
        self._seen: dict[tuple[str, str], int] = {}
        self._twice: dict[tuple[str, str], Sample] = {}
        distinct = {
            id(sample.labels): sample.labels for sample in self._samples if canonical(sample.name)[:5] == "DCGM_"
        }
        self._label_sets = list(distinct.values())
        self._pod_label = self._which_pod_label()

    def rows(self) -> Rows:
        places, names = self._places, dict[str, str]()
        for sample in self._samples:
            name = names.get(sample.name)
            if name is None:
                name = names[sample.name] = canonical(sample.name)
            if name[:5] != "DCGM_":
                self._others.append(sample)
                continue
            place = places.get(id(sample.labels))
            if place is None:
                place = places[id(sample.labels)] = self._place(sample.labels)
            pods = place.unit.figures.get(name)
            if pods is None:
                pods = place.unit.figures[name] = {}
            pods.setdefault(place.pod, []).append(sample)
            key = (sample.name, place.series)
            if key in self._seen:
                self._twice.setdefault(key, sample)
            self._seen[key] = self._seen.get(key, 0) + 1
        for unit in self._units.values():
            unit.close()
        return Rows(
            units=tuple(self._units[key] for key in sorted(self._units)),
            others=tuple(self._others),
            pod_label=self._pod_label,
            exporter_pods=tuple(sorted(self._exporters)),
            labels=_in_order(self._label_sets),
            repeated=tuple((self._twice[key], self._seen[key]) for key in sorted(self._twice)),
            series=len(self._seen),
            queried=self._queried or any(map(_scraped, self._label_sets)),
        )

    def _which_pod_label(self) -> str:
        """The first of the three spellings that names a pod anywhere; a ``pod`` that is the exporter itself is none."""
        for pod, _, container in POD_LABELS:
            for labels in self._label_sets:
                named = labels.get(pod)
                if named is None:
                    continue
                if pod == "pod" and _scraped(labels) and is_exporter_pod(named, labels.get(container, "")):
                    self._exporters.add(named)
                    continue
                if pod != "exported_pod" or named:
                    return self._noted(pod)
        return ""

    def _noted(self, pod_label: str) -> str:
        if pod_label == "exported_pod":
            self._exporters |= {labels["pod"] for labels in self._label_sets if labels.get("pod")}
        return pod_label

    def _place(self, labels: Labels) -> _Place:
        uuid = labels.get("UUID") or labels.get("uuid") or ""
        host = next((labels[name] for name in HOST_LABELS if labels.get(name)), "") or labels.get("instance", "")
        gpu = labels.get("gpu") or labels.get("device") or ""
        instance = labels.get("GPU_I_ID", "")
        key = (uuid, "", "", instance) if is_named(uuid) else ("", host, gpu, instance)
        unit = self._units.get(key)
        if unit is None:
            profile = labels.get("GPU_I_PROFILE", "")
            unit = self._units[key] = Unit(uuid=uuid, host=host, gpu=gpu, instance=instance, profile=profile)
        return _Place("\0".join(map("\1".join, sorted(labels.items()))), self._pod(labels), unit)

    def _pod(self, labels: Labels) -> Pod:
        if not self._pod_label or not (name := labels.get(self._pod_label)):
            return NOBODY
        if self._pod_label == "pod" and name in self._exporters and _scraped(labels):
            return NOBODY
        namespace = next(names[1] for names in POD_LABELS if names[0] == self._pod_label)
        return Pod(labels.get(namespace, ""), name)


def _scraped(labels: Labels) -> bool:
    return any(name in labels for name in SCRAPED_LABELS)


def _in_order(label_sets: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Every label once, each behind those that stand before it in most sets: here, in the longest set that has it."""
    ordered: list[str] = []
    orders = {tuple(labels) for labels in label_sets}  # few, where there are many sets
    by_length = sorted(orders, key=lambda names: (-len(names), names))
    for labels in by_length[:_MOST_ORDERS]:
        before = 0
        for name in labels:
            if name in ordered:
                before = ordered.index(name) + 1
            else:
                ordered.insert(before, name)
                before += 1
    rest = {name: None for labels in by_length[_MOST_ORDERS:] for name in labels}
    return tuple(dict.fromkeys((*ordered, *rest)))
