"""The devices that one cell names: ``0,1``, ``[0, 1]``, ``gpu0-3``, ``['GPU-…', 'GPU-…']``.

Text in, names out; pure. Programs write such lists in their own brackets and quotes, and batch systems shorten runs of
numbers to a range; none of these signs is a part of a name.
"""

from __future__ import annotations

import re

from gpuledger.model.addresses import is_index

_APART = re.compile(r"[\s,;|+&]+")
_AROUND = "[](){}<>'\"`"
_RANGE = re.compile(
    r"(?P<before>(?:[^/\s]+/)?(?:gpu|nvidia|cuda:?|card)?)(?P<first>[0-9]{1,4})-(?P<last>[0-9]{1,4})", re.IGNORECASE
)
NO_NAMES = frozenset({"none", "null", "nil", "nan", "n/a", "na", "-", "--", "?", "unknown"})
"""What stands where no device is named; compared in lower case."""


class NamedTwice(ValueError):
    """A list with a number that stands in it twice: on two machines these are two devices, and nothing tells which."""


def devices_in(text: str) -> tuple[str, ...]:
    """The names of a cell, in its order; none where it is empty or has a word for none.

    Raises:
        NamedTwice: a number stands in it twice; with a sentence for the person.
        ValueError: it is no list of devices; with one too.
    """
    names: list[str] = []
    for part in _APART.split(text):
        name = part.strip(_AROUND)
        if not name or name.lower() in NO_NAMES:
            continue
        if not any(letter.isalnum() for letter in name):
            raise ValueError(f"{text[:40]!r} is no list of devices: {name[:20]!r} names none")
        found = _RANGE.fullmatch(name)
        if found is None:
            names.append(name)
            continue
        first, last = int(found["first"]), int(found["last"])
        if first > last:
            raise ValueError(f"{text[:40]!r} is no list of devices: {name[:20]!r} runs backwards")
        names += [f"{found['before']}{number}" for number in range(first, last + 1)]
    twice = next((name for place, name in enumerate(names) if is_index(name) and name in names[:place]), "")
    if twice:
        raise NamedTwice(f"{text[:40]!r} names {twice[:20]!r} twice: numbers of several machines, or a mistake")
    return tuple(dict.fromkeys(names))
