"""A lake: a folder of Parquet files, one a table and month, and the manifest that says what they are.

Pure. A lake is a copy: the ledger stays where rows come from. Times are microseconds UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

from gpuledger.model.moments import SECOND_US

FORMAT = "gpuledger-lake"
VERSION = 1
"""Of the manifest and of the files' columns; another one is not read."""

MANIFEST = "gpuledger-lake.json"
DERIVED = "derived_record"
"""The folder of what ``meter --lake`` derives: columns of ``usage_record``, writer ``lake``."""
TEXTS = "identity_text"
"""One file without months: it is written anew by every export, so who was forgotten leaves with the next one."""

SINGLE = frozenset({"placement", "policy", TEXTS})
"""Tables that stand in one file, whatever their rows speak of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeFile:
    """One Parquet file of a lake.

    Args:
        name: its path in the lake, with ``/``.
        table: whose rows they are.
        month: ``YYYY-MM`` in UTC; empty for a table in one file.
        rows: how many.
        size: bytes.
        sha256: of its bytes, hex.
        changed_ns: its time of change when it was written: as long as that and the size stand, it is not hashed again.
        numbers: of each writer the lowest and the highest number.
    """

    name: str
    table: str
    month: str
    rows: int
    size: int
    sha256: str
    changed_ns: int
    numbers: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a lake is.

    Args:
        exported_at_us: when it was last exported.
        since_us, until_us: which months were asked for, start of the first and end of the last; 0 and 0: all.
        whole: whether every event of the ledger up to ``until_us``, or up to the export, is in it.
        all_tables: whether every table was exported.
        marks: where the rows end, by writer.
        heads: of each chain the last number and link hash.
        root: of the last seal; empty before the first.
        files: in the order of their names.
        metered_at_us: the time that ``meter --lake`` ran for; 0: never.
        metered_until_us: end of the last hour that it derived.
        metered_of: hash over the files that it read.
        unplaced_us: time that it found of workloads that ran nobody knows where.
    """

    exported_at_us: int
    since_us: int = 0
    until_us: int = 0
    whole: bool = True
    all_tables: bool = True
    marks: Mapping[str, int]
    heads: Mapping[str, tuple[int, str]]
    root: str
    files: tuple[LakeFile, ...]
    metered_at_us: int = 0
    metered_until_us: int = 0
    metered_of: str = ""
    unplaced_us: int = 0

    def of(self, *tables: str) -> list[LakeFile]:
        """The files of some tables, in the order of their names."""
        return [file for file in self.files if file.table in tables]

    def to_json(self) -> str:
        """The text of the manifest."""
        values = {name: getattr(self, name) for name in self.__slots__ if name != "files"}
        document = {"format": FORMAT, "version": VERSION, **values, "files": [asdict(file) for file in self.files]}
        return json.dumps(document, indent=1, sort_keys=True) + "\n"


class NotThisFormat(ValueError):
    """The text is a manifest of another version."""


def read_manifest(text: str) -> Manifest:
    """The inverse of :meth:`Manifest.to_json`.

    Raises:
        NotThisFormat: for another version.
        ValueError: when it is no manifest at all.
    """
    try:
        document = json.loads(text)
        named, version = document.pop("format"), document.pop("version")
        if (named, version) == (FORMAT, VERSION):
            files = tuple(sorted((_file(each) for each in document.pop("files")), key=lambda file: file.name))
            heads = {str(name): (int(number), str(link)) for name, (number, link) in document.pop("heads").items()}
            return Manifest(**document, heads=heads, files=files)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"not the manifest of a lake: {error}") from None
    if named != FORMAT:
        raise ValueError("not the manifest of a lake")
    raise NotThisFormat(f"version {version}")


def _file(values: dict[str, object]) -> LakeFile:
    known = {field.name for field in fields(LakeFile)}
    if set(values) != known:
        raise ValueError(f"a file has {sorted(set(values) ^ known)}")
    numbers = values.pop("numbers")
    if not isinstance(numbers, dict):
        raise ValueError("numbers are no object")  # noqa: TRY004 told as any other fault of the text
    name = str(values["name"])
    if name.startswith("/") or ".." in name.split("/"):
        raise ValueError(f"a file lies outside: {name}")
    return LakeFile(**values, numbers={key: (int(low), int(high)) for key, (low, high) in numbers.items()})  # type: ignore[arg-type]


def month_of(at_us: int) -> str:
    """The UTC month of a moment, ``YYYY-MM``."""
    moment = datetime.fromtimestamp(at_us // SECOND_US, UTC)
    return f"{moment.year:04}-{moment.month:02}"


def month_span(month: str) -> tuple[int, int]:
    """Start and end of a UTC month, microseconds."""
    year, number = int(month[:4]), int(month[5:])
    start = datetime(year, number, 1, tzinfo=UTC)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    return round(start.timestamp()) * SECOND_US, round(end.timestamp()) * SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    """What an export did.

    Args:
        place: the folder, as named.
        manifest: as it now stands.
        written: names of the files that were written.
        kept: how many files stood as they were.
        removed: names of files that have no rows any more.
        strangers: names of Parquet files in the folder that no export wrote.
    """

    place: str
    manifest: Manifest
    written: tuple[str, ...]
    kept: int
    removed: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeDifference:
    """An hour of which the exported rows and the events of a lake say different things.

    Args:
        meter, hour_us, host, device, subject: the key of the record.
        exported, derived: seconds.
    """

    meter: str
    hour_us: int
    host: str
    device: str
    subject: str
    exported: int
    derived: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeMeterReport:
    """What ``meter --lake`` did.

    Args:
        place: the folder, as named.
        until_us: end of the last hour that was derived.
        records: derived rows that now stand.
        files: names of the files that were written; none where nothing had changed.
        unplaced_s: whole seconds of workloads that ran nobody knows where: they have no record.
        checked: whether exported records were compared.
        differences: how many; the first of them are listed.
        listed: differences, in the order of their hours.
    """

    place: str
    until_us: int
    records: int
    files: tuple[str, ...]
    unplaced_s: int
    checked: bool = False
    differences: int = 0
    listed: tuple[LakeDifference, ...] = ()


def numbers_of(pairs: Iterable[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Of (writer, number) pairs the lowest and the highest number of each writer."""
    found: dict[str, tuple[int, int]] = {}
    for writer, number in pairs:
        low, high = found.get(writer, (number, number))
        found[writer] = (min(low, number), max(high, number))
    return dict(sorted(found.items()))
