"""Figures as people read them: durations, memory, sizes, counts, percents. Text only, from exact integers."""

from __future__ import annotations

from fractions import Fraction

from gpuledger.model.rounding import nearest

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS

DAYS_FROM_MS = 72 * HOUR_MS
"""GPU time is talked of in hours; from three days on, days read better."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def duration_ms(ms: int) -> str:
    """``679 ms``, ``6.7 s``, ``3 h 57 min 29.8 s``, ``3 d 15 h 11 min``: rounded for eyes, with its units."""
    if ms < 0:
        return f"-{duration_ms(-ms)}"
    if ms < SECOND_MS:
        return f"{ms} ms"
    if ms >= DAYS_FROM_MS:
        minutes = nearest(Fraction(ms, MINUTE_MS))
        days, minutes = divmod(minutes, 24 * 60)
        return _joined((days, "d"), (minutes // 60, "h"), (minutes % 60, "min"))
    # Tenths first, units after: 59.96 s must become 1 min, never 60.0 s.
    tenths = nearest(Fraction(ms, 100))
    minutes, tenths = divmod(tenths, 600)
    seconds = f"{tenths // 10}.{tenths % 10} s" if tenths % 10 else (f"{tenths // 10} s" if tenths else "")
    whole = _joined((minutes // 60, "h"), (minutes % 60, "min"), keep_last=bool(seconds)) if minutes else ""
    return f"{whole} {seconds}".strip()


def duration_s(seconds: int) -> str:
    """:func:`duration_ms` of whole seconds; ``0 s`` for none."""
    return duration_ms(seconds * SECOND_MS) if seconds else "0 s"


def duration_us(us: int) -> str:
    """:func:`duration_ms` of microseconds, to the nearest ms."""
    return duration_ms(nearest(Fraction(us, 1000)))


def memory_mib(mib: int) -> str:
    """``184 MiB``, ``14.1 GiB``."""
    return size_bytes(mib * 1024 * 1024)


def size_bytes(size: int) -> str:
    """``512 B``, ``3.4 MiB``: one decimal from KiB on, none where it is whole."""
    power = 0
    while power + 1 < len(_BINARY) and abs(size) >= 1024 ** (power + 1):
        power += 1
    tenths = nearest(Fraction(size * 10, 1024**power))
    if abs(tenths) >= 10240 and power + 1 < len(_BINARY):
        power, tenths = power + 1, nearest(Fraction(size * 10, 1024 ** (power + 1)))
    return f"{decimal(tenths, 1, trim=True)} {_BINARY[power]}"


def count(number: int) -> str:
    """``14,249,789``: digits in threes."""
    return f"{number:,}"


def several(number: int, one: str, many: str = "") -> str:
    """A number and its word: ``1 look``, ``3 looks``, ``2 finished processes``."""
    return f"{count(number)} {one if number == 1 else many or f'{one}s'}"


def decimal(scaled: int, places: int, *, trim: bool = False) -> str:
    """A fixed-point number as text: ``decimal(1234, 3)`` is ``1.234``; ``trim`` drops a fraction of zeros."""
    sign = "-" if scaled < 0 else ""
    whole, fraction = divmod(abs(scaled), 10**places)
    if trim and not fraction:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{fraction:0{places}d}"


def percent(part: Fraction) -> str:
    """A part of one as percent with one decimal; what is not all never reads 100, what is some never reads 0."""
    tenths = nearest(part * 1000)
    if tenths == 0 and part:
        return "<0.1 %" if part > 0 else "-0.1 %"
    if tenths == 1000 and part < 1:
        return ">99.9 %"
    return f"{decimal(tenths, 1, trim=part in (0, 1))} %"


def _joined(*units: tuple[int, str], keep_last: bool = False) -> str:
    """Units with their numbers, without leading zeros, nor trailing ones unless a smaller unit follows."""
    shown = list(units)
    while shown and not shown[0][0]:
        shown.pop(0)
    while shown and not shown[-1][0] and not keep_last:
        shown.pop()
    return " ".join(f"{number} {unit}" for number, unit in shown)
