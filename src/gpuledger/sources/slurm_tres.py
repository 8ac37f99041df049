"""TRES strings, Slurm's way to say what a job holds: ``billing=32,cpu=32,gres/gpu:a100=1,gres/gpu=1,mem=128G``.

Text in, devices by class out; pure. ``gres/gpu`` counts all GPUs of a job and ``gres/gpu:TYPE`` those of a
type, so the two are never added: the same four stand in ``gres/gpu=4,gres/gpu:a100=4`` twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

UNTYPED = "gpu"
"""The class of GPUs whose type is not told."""

_GPU = "gres/gpu"
_COUNT = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one TRES string says is held.

    Args:
        devices: GPUs by class, sorted; ``gpu`` for those without a type. A MIG type counts its instances.
        shards: ``gres/shard``, parts of GPUs whose number in one GPU is not told; 0 where whole GPUs are.
        mps: ``gres/mps``, the same for MPS percentages.
        cpus, nodes: as told; 0 where not.
        conflict: what does not fit together; empty where all does.
    """

    devices: tuple[tuple[str, int], ...] = ()
    shards: int = 0
    mps: int = 0
    cpus: int = 0
    nodes: int = 0
    conflict: str = ""

    @property
    def count(self) -> int:
        """GPUs of all classes."""
        return sum(number for _, number in self.devices)


@lru_cache(maxsize=65_536)
def held(text: str) -> Held:
    """What a TRES string holds of GPUs, their parts, CPUs and nodes; other resources are not looked at.

    Raises:
        ValueError: not a TRES string, or a number of devices that is none.
    """
    figures: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, figure = part.partition("=")
        if not equals or not name:
            raise ValueError(f"{text[:60]!r} is not a TRES string")
        if name.isdigit():
            raise ValueError(f"{text[:60]!r} names resources by number, and what a number means only the cluster knows")
        figures[name.strip()] = figure.strip()
    total = _number(figures.get(_GPU, "0"))
    typed = {
        name.removeprefix(f"{_GPU}:"): _number(figure)
        for name, figure in figures.items()
        if name.startswith(f"{_GPU}:") and len(name) > len(_GPU) + 1
    }
    typed = {name: number for name, number in typed.items() if number}
    devices, conflict = _devices(total if _GPU in figures else sum(typed.values()), typed)
    is_whole = bool(devices)
    return Held(
        devices=devices,
        shards=0 if is_whole else _number(figures.get("gres/shard", "0")),
        mps=0 if is_whole else _number(figures.get("gres/mps", "0")),
        cpus=_loose(figures.get("cpu", "")),
        nodes=_loose(figures.get("node", "")),
        conflict=conflict,
    )


def _devices(total: int, typed: dict[str, int]) -> tuple[tuple[tuple[str, int], ...], str]:
    """GPUs by class, adding up to ``total``: where types are tracked for some only, the rest has none."""
    told = sum(typed.values())
    if told <= total:
        rest = {UNTYPED: total - told} if total > told else {}
        return tuple(sorted((typed | rest).items())), ""
    conflict = f"gres/gpu={total}, and the types add up to {told}; {total} are counted"
    class_name = next(iter(typed)) if len(typed) == 1 else UNTYPED
    return ((class_name, total),) if total else (), conflict


def _number(figure: str) -> int:
    if not _COUNT.fullmatch(figure):
        raise ValueError(f"{figure[:20]!r} is not a number of devices")
    return int(figure)


def _loose(figure: str) -> int:
    """A figure that nothing is metered by: 0 where Slurm shortened it (``1.50K``)."""
    return int(figure) if _COUNT.fullmatch(figure) else 0
