"""TRES strings, Slurm's way to say what a job holds: ``billing=32,cpu=32,gres/gpu:a100=1,gres/gpu=1,mem=128G``.

Text in, devices by class out; pure. ``gres/gpu`` counts all GPUs of a job and ``gres/gpu:TYPE`` those of a
type, so the two are never added: the same four stand in ``gres/gpu=4,gres/gpu:a100=4`` twice. Before Slurm 21.08, and
where GPUs are not among ``AccountingStorageTRES``, only ``AllocGRES`` has them: ``gpu:2``, ``gpu:tesla:2``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

UNTYPED = "gpu"
"""The class of GPUs whose type is not told."""

_GPU = "gres/gpu"
_SHARD = "gres/shard"
_MPS = "gres/mps"
_COUNT = re.compile(r"[0-9]{1,12}")
_PLACES = re.compile(r"\([^()]*\)")
"""``(S:0-1)``, ``(IDX:0,2)``: which of a node's, behind the number of a gres."""

_MIG = re.compile(
    r"(?:(?P<parent>.+)[_/-])?(?P<profile>(?:[0-9]+c\.)?[0-9]+g\.[0-9]+gb)(?:[.+](?P<more>[a-z.+]+))?", re.IGNORECASE
)
_GPU_ID = "7696487"
"""What old versions print for ``gpu`` where they lost the name: the number that they keep it by, its letters' codes."""

_HAS_GPUS = re.compile(r"(?:^|,)gres/(?:gpu|shard|mps)[:=]")
_PARTS = {"gpu": _GPU, _GPU_ID: _GPU, "shard": _SHARD, "mps": _MPS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What one TRES string says is held.

    Args:
        devices: GPUs by class, sorted; ``gpu`` for those without a type. A MIG type counts its instances.
        shards: ``gres/shard``, parts of GPUs whose number in one GPU is not told; 0 where whole GPUs are.
        mps: ``gres/mps``, the same for MPS percentages.
        parts_of: the type of the GPUs that these are parts of; ``gpu`` where it is not told, or several are.
        cpus, nodes: as told; 0 where not.
        conflict: what does not fit together; empty where all does.
    """

    devices: tuple[tuple[str, int], ...] = ()
    shards: int = 0
    mps: int = 0
    parts_of: str = UNTYPED
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
        if not equals or not name or '"' in part:
            raise ValueError(f"{text[:60]!r} is not a TRES string")
        if name.isdigit():
            raise ValueError(f"{text[:60]!r} names resources by number, and what a number means only the cluster knows")
        figures[name.strip()] = figure.strip()
    total, typed = _of(_GPU, figures)
    devices, conflict = _devices(total, typed)
    shards, of_shards = (0, {}) if devices else _of(_SHARD, figures)
    mps, of_mps = (0, {}) if devices else _of(_MPS, figures)
    types = sorted({*of_shards, *of_mps})
    return Held(
        devices=devices,
        shards=shards,
        mps=mps,
        parts_of=types[0] if len(types) == 1 else UNTYPED,
        cpus=_loose(figures.get("cpu", "")),
        nodes=_loose(figures.get("node", "")),
        conflict=conflict,
    )


def class_of(type_name: str) -> str:
    """The class of a type of GPU: of a MIG type its GPU, where that is told, and the profile, ``a100/1g.5gb``."""
    found = _MIG.fullmatch(type_name)
    if found is None:
        return type_name
    more = f"+{found['more'].lower()}" if found["more"] else ""
    return f"{found['parent'] or UNTYPED}/{found['profile'].lower()}{more}"


def class_asked(asked: Held) -> str:
    """The one type of GPU that was asked for, ``gpu`` for any or several, empty for none."""
    types = [name for name, _ in asked.devices]
    if len(types) == 1:
        return class_of(types[0])
    return UNTYPED if types or asked.shards or asked.mps else ""


def with_gres(tres: str, gres: str) -> str:
    """A TRES string with the GPUs of ``AllocGRES`` or ``ReqGRES``, where it has neither GPUs nor parts of any.

    Of ``AllocGRES`` the numbers are those of all nodes of a job.

    Raises:
        ValueError: a gres by a number that is not known, or no gres.
    """
    if not gres or gres == "(null)" or _HAS_GPUS.search(tres):
        return tres
    counts: dict[str, int] = {}
    for part in _PLACES.sub("", gres).split(","):
        name, *rest = part.strip().removeprefix("gres:").removeprefix("gres/").replace("=", ":").split(":")
        if name.isdigit() and name not in _PARTS:
            raise ValueError(f"{gres[:60]!r} names resources by number, and what a number means only the cluster knows")
        if name not in _PARTS:
            continue
        number = _number(rest.pop()) if rest and _COUNT.fullmatch(rest[-1]) else 1
        told = ":".join([_PARTS[name], *rest])
        counts[told] = counts.get(told, 0) + number
    whole: dict[str, int] = {}
    for told, number in counts.items():
        base = told.partition(":")[0]
        whole[base] = whole.get(base, 0) + number
    return ",".join(filter(None, [tres, *(f"{name}={number}" for name, number in (counts | whole).items())]))


def _of(base: str, figures: dict[str, str]) -> tuple[int, dict[str, int]]:
    """How many of ``gres/gpu``, ``gres/shard`` or ``gres/mps`` there are, and of which types."""
    typed = {
        name.removeprefix(f"{base}:"): _number(figure)
        for name, figure in figures.items()
        if name.startswith(f"{base}:") and len(name) > len(base) + 1
    }
    typed = {name: number for name, number in typed.items() if number}
    return _number(figures[base]) if base in figures else sum(typed.values()), typed


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
