"""Times and durations as Slurm prints them: local times of a zone, epoch seconds, ``D-HH:MM:SS``.

Text in; microseconds UTC, seconds or :class:`Missing` out; ``ValueError`` where it is none of these.
``sacct`` prints local times of the machine it runs on, so a zone is needed unless the times carry their
offset (``SLURM_TIME_FORMAT=%FT%T%z`` or ``%s``). A zone's letters (``%Z``: CEST) mean several zones, so they need
the zone too, and then tell which hour of two is meant.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from gpuledger.errors import Misconfigured
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US, SECOND_US, to_datetime, to_us
from gpuledger.sources.slurm_rows import NOT_TOLD, TOLD_TWICE, Doubt

ABSENT_TIMES = frozenset({"", "unknown", "none", "n/a", "(null)", "0"})
"""What stands for no time: not yet, or never. Compared in lower case."""

NO_VALUE = 0xFFFF_FFF0
"""Slurm's NO_VAL and INFINITE lie above it, 32 bits all but one set (slurm/slurm.h); as a time, the year 2106."""

LONGEST_SECONDS = 100 * 366 * 86_400
"""A century; more is a sentinel."""

_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]{1,9})?"
    r"(?: ?(?:(Z|UTC|GMT)|([+-])([0-9]{2}):?([0-9]{2})|([A-Z]{3,5})))?"
)
_IN_HOUR_US = {
    f":{minute:02}:{second:02}": (minute * 60 + second) * SECOND_US for minute in range(60) for second in range(60)
}
_EPOCH_SECONDS = re.compile(r"[0-9]{9,11}")
_DURATION = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{2})(?:\.[0-9]{1,9})?")
_NO_DURATION = frozenset({"", "invalid", "unlimited", "partition_limit", "unknown", "none", "n/a"})


class Times:
    """Reads the times of one file in one zone.

    Args:
        zone: of the local times; None when not given.
        path: the file as the user named it.
    """

    def __init__(self, zone: tzinfo | None, path: str) -> None:
        self._zone = zone
        self._path = path
        self._known: dict[str, tuple[int, ...]] = {}
        self._hours: dict[str, int] = {}
        self.skipped: set[str] = set()
        """Local times that never happened in that zone, because the clock was set forward over them."""

    def moments(self, text: str) -> tuple[int, ...]:
        """What a time can mean, microseconds UTC: nothing where there is none, two in the hour that happens twice.

        Raises:
            ValueError: not a time.
            Misconfigured: ``zone-needed`` for a local time without a zone.
        """
        hour_us = self._hours.get(text[:13])
        if hour_us and (rest_us := _IN_HOUR_US.get(text[13:])) is not None:
            return (hour_us + rest_us,)
        found = self._known.get(text)
        if found is None:
            found = self._known[text] = self._read(text.strip())
        return found

    def asked(self, text: str, start_us: int | Missing) -> int | Missing:
        """A moment before a run, as of its asking: ``TOLD_TWICE`` where two are possible, both before the start.

        Raises:
            ValueError: not a time.
            Misconfigured: ``zone-needed``.
        """
        found = self.moments(text)
        if len(found) < 2:
            return found[0] if found else NOT_TOLD
        return found[0] if not isinstance(start_us, Missing) and start_us < found[1] else TOLD_TWICE

    def _read(self, text: str) -> tuple[int, ...]:
        if text.lower() in ABSENT_TIMES:
            return ()
        if _EPOCH_SECONDS.fullmatch(text):
            return (int(text) * SECOND_US,) if int(text) < NO_VALUE else ()
        match = _TIME.fullmatch(text)
        if match is None:
            raise ValueError(f"{text[:40]!r} is not a time")
        if len(text) == 19 and self._zone is not None and text[:13] not in self._hours:
            self._hours[text[:13]] = self._even_hour(text[:13])
        year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
        local = datetime(year, month, day, hour, minute, min(second, 59))  # noqa: DTZ001 - local by nature
        if match[7] or match[8]:
            offset = timedelta(hours=int(match[9] or 0), minutes=int(match[10] or 0))
            return self._of(to_us(local.replace(tzinfo=timezone(-offset if match[8] == "-" else offset))))
        if self._zone is None:
            message = f"{self._path}: its times are local and carry no zone ({text})"
            hint = "say which zone the cluster's clock shows: --zone Europe/Berlin, or --zone UTC"
            raise Misconfigured("zone-needed", message, hint=hint)
        first, second_us = (to_us(local.replace(tzinfo=self._zone, fold=fold)) for fold in (0, 1))
        if match[11]:
            return self._of(self._lettered(text, match[11], {first: 0, second_us: 1}, local))
        if first == second_us:
            return self._of(first)
        if to_datetime(first).astimezone(self._zone).replace(tzinfo=None) != local:
            self.skipped.add(text)
            return self._of(first)
        return first, second_us

    def _lettered(self, text: str, letters: str, folds: dict[int, int], local: datetime) -> int:
        """The moment of a local time with its zone's letters, of those that it can be without them."""
        for at_us, fold in folds.items():
            if local.replace(tzinfo=self._zone, fold=fold).tzname() == letters:
                return at_us
        raise ValueError(f"{text[:40]!r} is a time of {letters}, which the clocks of {self._zone} did not show then")

    def _even_hour(self, text: str) -> int:
        """Where an hour of local time begins, microseconds UTC, if the clock was not set in it; else 0."""
        first, last = (datetime.fromisoformat(f"{text}:{rest}") for rest in ("00:00", "59:59"))
        meanings = [to_us(one.replace(tzinfo=self._zone, fold=fold)) for one in (first, last) for fold in (0, 1)]
        hour_us = meanings[0]
        last_us = hour_us + 3599 * SECOND_US
        is_even = meanings == [hour_us, hour_us, last_us, last_us] and 0 < last_us < NO_VALUE * SECOND_US
        return hour_us if is_even else 0

    @staticmethod
    def _of(at_us: int) -> tuple[int, ...]:
        if at_us < 0:
            raise ValueError("it lies before 1970")
        return (at_us,) if at_us < NO_VALUE * SECOND_US else ()

    def span(
        self, start: str, end: str, elapsed_s: int | Missing, suspended_s: int | Missing
    ) -> tuple[int | Missing, int | Missing, Doubt]:
        """Start and end of a run, and what of them is in doubt.

        In the hour that the clock showed twice the row's own facts tell which is meant: start + elapsed = end, and
        no end before its start. Where several readings agree with them, the earliest is given, and what is open of it.

        Raises:
            ValueError: not times.
            Misconfigured: ``zone-needed``.
        """
        starts, ends = self.moments(start), self.moments(end)
        if len(starts) < 2 and len(ends) < 2:
            return starts[0] if starts else NOT_TOLD, ends[0] if ends else NOT_TOLD, Doubt.NONE
        if not starts or not ends:
            # an open run that is placed now could be another run to the next dump, which knows its end
            return starts[0] if starts else NOT_TOLD, ends[0] if ends else NOT_TOLD, Doubt.LENGTH
        pairs = [(one, two) for one in starts for two in ends]
        if not isinstance(elapsed_s, Missing):
            lasted_us = (elapsed_s + (0 if isinstance(suspended_s, Missing) else suspended_s)) * SECOND_US
            fits = [pair for pair in pairs if abs(pair[1] - pair[0] - lasted_us) <= CLOCK_TOLERANCE_US]
            if fits:
                return *fits[0], Doubt.NONE if len(fits) == 1 else Doubt.PLACE
        possible = [pair for pair in pairs if pair[0] <= pair[1]] or pairs[:1]
        return *possible[0], Doubt.NONE if len(possible) == 1 else Doubt.LENGTH


@lru_cache(maxsize=65_536)
def seconds(text: str) -> int | Missing:
    """A duration in whole seconds: ``D-HH:MM:SS``, ``HH:MM:SS``, ``MM:SS``, or seconds alone (``ElapsedRaw``).

    Raises:
        ValueError: neither a duration nor a word for none.
    """
    word = text.strip()
    if word.lower() in _NO_DURATION:
        return Missing(f"sacct: {word.lower() or 'empty'}")
    if word.isascii() and word.isdigit() and len(word) <= 20:
        found = int(word)
    else:
        match = _DURATION.fullmatch(word)
        if match is None:
            raise ValueError(f"{word[:40]!r} is not a duration")
        days, hours, minutes, rest = (int(part or 0) for part in match.groups())
        found = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    return found if found <= LONGEST_SECONDS else Missing(f"sacct: sentinel {found}")
