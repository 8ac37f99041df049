"""The rarer forms in which people keep what an exporter said: query results, and the exporter's own log.

Pure parts of :mod:`gpuledger.audit.exposition`; each gives what it found, or None for another form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpuledger.model.problem import Problem

_SHOWN = 60


def excerpt(text: str) -> str:
    """A line as it is shown in a message: its first sixty signs, in quotes of ours."""
    flat = "".join(sign if sign.isprintable() else "?" for sign in text[: _SHOWN + 1])
    return f"`{flat[:_SHOWN]}...`" if len(flat) > _SHOWN else f"`{flat}`"


class LooseSample(NamedTuple):
    """A sample that no strict reader would take.

    Args:
        name: of the metric; may be empty.
        labels: in the order of the text.
        value: as written; empty where there is none.
        elided: 1 where labels are elided as ``...``.
        queried: 1 where it is written as the answer to a query.
        line: 1-based, or the number of the series in JSON.
    """

    name: str
    labels: Mapping[str, str]
    value: str
    elided: int = 0
    queried: int = 0
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHolders:
    """Who holds one device, as the exporter's own log tells it.

    Args:
        device: ``nvidia0`` or a UUID.
        joined: the one pod (``namespace/name``) that it puts on the device's figures; empty where each gets a row.
        pods: every pod (``namespace/name``) that holds the device or a replica of it, sorted.
        sharing: whether the exporter gives each of them a row (virtual GPUs).
        line: 1-based, of the log.
    """

    device: str
    joined: str
    pods: tuple[str, ...]
    sharing: bool
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The series of a JSON answer, and what in it is none."""

    samples: tuple[LooseSample, ...]
    unread: tuple[Problem, ...] = ()


_NUMBER = r"[-+]?(?:\d++(?:\.\d*+)?(?:[eE][-+]?\d++)?|\.\d++|[iI]nf|NaN)"
_LOOSE = re.compile(
    rf"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*+)?\s*+\{{(?P<block>.*?)\}}\s*+(?P<arrow>=>)?\s*+(?P<value>{_NUMBER})?"
    r"\s*+(?P<at>@\s*+\[?[^\]\s]*+\]?)?\s*+(?:(?:#|//).*)?"
)
_PAIR = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=~?\s*"((?:[^"\\]|\\.)*)"\s*(,|$)')
_ELISION = re.compile(r"\s*(?:\.\.\.|…)\s*(,|$)")


def loose_sample(line: str) -> LooseSample | None:
    """A sample with elided labels, a comment behind it, ``=>`` before its figure, or without one.

    Args:
        line: without blanks around it.
    """
    found = _LOOSE.fullmatch(line)
    if found is None:
        return None
    block, labels, elided, at = found["block"], {}, 0, 0
    while at < len(block):
        pair = _PAIR.match(block, at)
        gap = None if pair else _ELISION.match(block, at)
        if pair is not None:
            labels[pair[1]] = pair[2].replace('\\"', '"').replace("\\\\", "\\")
            at = pair.end()
        elif gap is not None:
            elided, at = 1, gap.end()
        else:
            return None
    name = found["name"] or labels.pop("__name__", "")
    if not name and not labels:
        return None
    queried = int(bool(found["arrow"] or found["at"] or not found["value"]))
    return LooseSample(name, labels, found["value"] or "", elided=elided, queried=queried)


class DeviceMap(NamedTuple):
    """Pods by device id, as one line of the exporter's log prints a Go map."""

    entries: tuple[tuple[str, str], ...]
    sharing: bool

    def named(self, line: int) -> list[DeviceHolders]:
        """The devices, each once, with everybody who holds a part of it.

        Args:
            line: of the log.
        """
        held: dict[str, set[str]] = {}
        whole: dict[str, str] = {}
        for device_id, pod in self.entries:
            device = device_of(device_id)
            held.setdefault(device, set()).add(pod)
            if device_id == device:
                whole[device] = pod
        return [
            DeviceHolders(
                device=device,
                joined="" if self.sharing else whole.get(device, ""),
                pods=tuple(sorted(pods)),
                sharing=self.sharing,
                line=line,
            )
            for device, pods in held.items()
        ]


_MAPPING = re.compile(r"Device to (?P<sharing>sharing )?pods? mapping:? {0,3}map\[")
_ENTRY = re.compile(r"(?<![^\s\]])([^\s:{}\[\]]++(?:::\d++)?):(\[?)((?:\{[^{}]*+\}\s*+)++)\]?")
_FIELD = re.compile(r"(Name|Namespace):(\S*?)(?=[ }]|$)")


def mapping_of(line: str) -> DeviceMap | None:
    """The exporter's own map of devices to pods, out of a line of its log; None for any other line.

    Args:
        line: whole, as the exporter or the cluster's log printed it.
    """
    found = _MAPPING.search(line)
    if found is None:
        return None
    entries = []
    for device_id, _, pods in _ENTRY.findall(line[found.end() : line.rfind("]")]):
        for pod in re.findall(r"\{([^{}]*)\}", pods):
            named = dict(_FIELD.findall(pod))
            entries.append((device_id, f"{named.get('Namespace', '')}/{named.get('Name', '')}"))
    return DeviceMap(tuple(entries), sharing=bool(found["sharing"]))


def device_of(device_id: str) -> str:
    """The device of a plugin's id: ``nvidia0/vgpu1`` is of ``nvidia0`` (GKE), ``GPU-x::2`` of ``GPU-x`` (NVIDIA)."""
    return re.sub(r"/vgpu\d+$", "", device_id.partition("::")[0])


def api_series(text: str) -> Series | None:
    """The series of a JSON answer of Prometheus' query API, or of ``promtool query -o json``; None for other text.

    Args:
        text: whole.
    """
    start = text.lstrip()[:1]
    if start not in ("{", "["):
        return None
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = _results(answer)
    if found is None:
        return Series(samples=(), unread=(Problem(code="not-a-result", message="JSON, and no answer to a query"),))
    samples, unread = [], []
    for number, one in enumerate(found, 1):
        sample = _series(one, number)
        if sample is None:
            unread.append(Problem(code="not-a-sample", message=f"series {number} has no labels and figure"))
        else:
            samples.append(sample)
    return Series(samples=tuple(samples), unread=tuple(unread))


def _results(answer: Any) -> Sequence[Any] | None:
    """The list of results, wherever the answer keeps it."""
    for _ in range(3):
        if isinstance(answer, list):
            return answer
        if not isinstance(answer, dict):
            return None
        answer = answer.get("result", answer.get("data"))
    return None


def _series(one: Any, number: int) -> LooseSample | None:
    if not isinstance(one, dict):
        return None
    metric = one.get("metric", one)
    if not isinstance(metric, dict) or not all(isinstance(value, str) for value in metric.values()):
        return None
    labels = {str(name): value for name, value in metric.items()}
    pairs = one.get("values") if isinstance(one.get("values"), list) else [one.get("value")]
    last = pairs[-1] if pairs else None
    value = str(last[1]) if isinstance(last, list) and len(last) == 2 else ""
    return LooseSample(labels.pop("__name__", ""), labels, value, queried=1, line=number)
