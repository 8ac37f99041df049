"""What nvidia-smi writes in a cell: figures with and without units, words for absence, names, local times.

Text in, a value or :class:`Missing` out; ``ValueError`` where it is neither, so that the caller can
name the line. Tokens of absence are never 0, and 0 is never absence (FACTS A.4).
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime
from functools import lru_cache

from gpuledger.model.missing import Missing

LARGEST_PID = 4_294_967_294
"""Windows gives 32-bit process ids; all ones is NVML's "not available"."""

LARGEST_MIB = 1 << 33
"""8 PiB. A figure near 2**44 MiB is NVML's 64-bit "not available" divided by MiB."""

LARGEST_MS = 100 * 366 * 86_400_000
"""A century; more is a sentinel."""

_ABSENT = frozenset({
    "", "-", "n/a", "n\\a", "none", "not supported", "unknown error", "insufficient permissions", "function not found",
    "not available in wddm driver model", "requested functionality has been deprecated", "gpu is lost", "err!",
    "gpu requires reset", "no permission", "not found", "gpu access blocked by the operating system",
})  # fmt: skip
"""Words that stand for no value, bare or in brackets. Anything wholly in brackets is absence too."""

_FIGURE = re.compile(r"([0-9]{1,20})(?:[.][0-9]{1,9})?[ ]?([A-Za-z%]*)")
_MEMORY_KIB = {"": 1024, "mib": 1024, "mb": 1024, "m": 1024, "kib": 1, "kb": 1, "gib": 1024 * 1024, "gb": 1024 * 1024}
"""Old drivers print MB and mean MiB."""
_TIME_US = {"": 1000, "ms": 1000, "us": 1, "s": 1_000_000, "sec": 1_000_000}

_CSV_TIME = re.compile(
    r"([0-9]{4})[/-]([0-9]{2})[/-]([0-9]{2})[ T]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]{1,6}))?"
)
_LOG_TIME = re.compile(
    r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}([0-9]{1,2}) ([0-9]{2}):([0-9]{2}):([0-9]{2}) ([0-9]{4})"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BUS_ID = re.compile(r"(?:([0-9A-Fa-f]{1,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")
_MASK_WORD = re.compile(r"redact|mask|anonym|hidden|\*{3}|x{6}", re.IGNORECASE)


def absent(text: str) -> Missing | None:
    """:class:`Missing` with the driver's own word when the cell says that there is no value, else None."""
    bare = text.strip()
    inner = bare[1:-1].strip() if len(bare) > 1 and bare[0] == "[" and bare[-1] == "]" else None
    if inner is not None or bare.lower() in _ABSENT:
        return Missing(f"nvidia-smi: {(inner or bare or 'empty')[:80]}")
    return None


def figure(text: str, unit: str = "") -> tuple[int, str] | Missing:
    """A whole number, rounded down as the driver does, and its unit: the cell's own, else ``unit``.

    Raises:
        ValueError: neither a figure nor a token of absence.
    """
    if (missing := absent(text)) is not None:
        return missing
    match = _FIGURE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is not a figure")
    return int(match[1]), (match[2] or unit).lower()


@lru_cache(maxsize=1024)
def memory_mib(text: str, unit: str = "") -> int | Missing:
    """Memory in MiB; a sentinel of the driver is Missing.

    Raises:
        ValueError: not a figure, or a unit that is not one of memory.
    """
    value = figure(text, unit)
    if isinstance(value, Missing):
        return value
    number, said = value
    if said == "b":
        mib = number >> 20
    elif said in _MEMORY_KIB:
        mib = number * _MEMORY_KIB[said] // 1024
    else:
        raise ValueError(f"{text.strip()[:40]!r} is not an amount of memory")
    return mib if mib < LARGEST_MIB else Missing(f"driver: sentinel {number}")


@lru_cache(maxsize=1024)
def percent(text: str) -> int | Missing:
    """A share in whole percent, 0 to 100; anything above is a sentinel or garbage and is Missing.

    Raises:
        ValueError: not a figure, or another unit.
    """
    value = figure(text)
    if isinstance(value, Missing):
        return value
    number, said = value
    if said not in ("", "%"):
        raise ValueError(f"{text.strip()[:40]!r} is not a percentage")
    return number if number <= 100 else Missing(f"driver: sentinel {number}")


def milliseconds(text: str, unit: str = "") -> int | Missing:
    """A duration in ms; a sentinel is Missing.

    Raises:
        ValueError: not a figure, or a unit that is not one of time.
    """
    value = figure(text, unit)
    if isinstance(value, Missing):
        return value
    number, said = value
    if said not in _TIME_US:
        raise ValueError(f"{text.strip()[:40]!r} is not a duration")
    ms = number * _TIME_US[said] // 1000
    return ms if ms <= LARGEST_MS else Missing(f"driver: sentinel {number}")


def process_id(text: str) -> int | Missing:
    """A process id.

    Raises:
        ValueError: not one, or 0, which some drivers give as garbage.
    """
    if (missing := absent(text)) is not None:
        return missing
    word = text.strip()
    if not (word.isascii() and word.isdigit()) or len(word) > 10 or not 0 < int(word) <= LARGEST_PID:
        raise ValueError(f"{word[:40]!r} is not a process id")
    return int(word)


@lru_cache(maxsize=1024)
def local_time(text: str) -> datetime | Missing:
    """A local time without a zone, as CSV (``2026/07/03 22:22:01.444``) or log (``Fri Jul  3 22:22:00 2026``) has it.

    Raises:
        ValueError: neither.
    """
    if (missing := absent(text)) is not None:
        return missing
    word = text.strip()
    if match := _CSV_TIME.fullmatch(word):
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        micros = int((match[7] or "0").ljust(6, "0"))
    elif (match := _LOG_TIME.fullmatch(word)) and match[1] in _MONTHS:
        year, month, micros = int(match[6]), _MONTHS.index(match[1]) + 1, 0
        day, hour, minute, second = (int(part) for part in match.groups()[1:5])
    else:
        raise ValueError(f"{word[:40]!r} is not a time")
    if not 1990 <= year <= 2200:
        raise ValueError(f"{word[:40]!r} lies in no year that a driver knew")
    return datetime(year, month, day, hour, minute, second, micros)  # noqa: DTZ001 - local by nature


@lru_cache(maxsize=64)
def switch(text: str) -> bool | Missing:
    """``Enabled`` or ``Disabled`` (or 1 and 0, as ``is_running`` has it); a token of absence is Missing.

    Raises:
        ValueError: another word.
    """
    word = text.strip().lower()
    if word in ("enabled", "1", "yes"):
        return True
    if word in ("disabled", "0", "no"):
        return False
    if (missing := absent(text)) is not None:
        return missing
    raise ValueError(f"{text.strip()[:40]!r} is neither Enabled nor Disabled")


@lru_cache(maxsize=1024)
def name(text: str) -> str:
    """A product or process name; empty where the driver gives none."""
    return "" if absent(text) is not None else text.strip()


@lru_cache(maxsize=1024)
def bus_id(text: str) -> str:
    """A PCI address as current drivers spell it, ``00000000:0C:00.0``; empty when the text is none."""
    match = _BUS_ID.fullmatch(text.strip())
    return f"{(match[1] or '0').upper():0>8}:{match[2]}:{match[3]}.{match[4]}".upper() if match else ""


def is_masked(uuid: str) -> bool:
    """Whether a UUID or serial was blanked by whoever made the capture, so that it identifies nothing.

    Zeroed (also with a running number at its ends), starred, or named so. A real UUID has 32 random
    digits: 24 of them equal does not happen.
    """
    if _MASK_WORD.search(uuid):
        return True
    digits = uuid.removeprefix("GPU-").removeprefix("MIG-").replace("-", "")
    return len(digits) >= 8 and Counter(digits).most_common(1)[0][1] >= len(digits) * 3 // 4
