"""The usage report: the contract of its JSON, sheets that add up, a table that reads well."""

from __future__ import annotations

import csv
import io
import json
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuledger.model.durations import count, duration_ms, percent
from gpuledger.model.meters import GPU_CONTEXT
from gpuledger.model.missing import Missing
from gpuledger.model.usage import UnattributedLine, UsageReport, UsageRow, Watched
from gpuledger.reports import usage_report

GPU = "GPU-5a3c1f2e-1111-2222-3333-444455556666"


def row(key: tuple[str, ...], quantity: int) -> UsageRow:
    return UsageRow(key=key, quantity=quantity, settled=quantity, observed=0, provisional=0, busy_ms=Missing("none"))


TABLE = """\
gpu.context by service  2026-07-27T00:00:00Z to 2026-07-28T00:00:00Z
time a process held a device; contexts overlap, so a sum can exceed the wall clock

service                                          time          ms   share               observed
────────────────────────────────────────────────────────────────────────────────────────────────
ollama                              3 h 57 min 29.8 s  14,249,789  94.0 %  ███████▌  18 min 20 s
xtts                                            6.7 s       6,748  <0.1 %  ▏
unattributed:before-watch               12 min 53.1 s     773,149   5.1 %  ▍
dead before the agent first looked
unattributed:between-samples              2 min 3.7 s     123,676   0.8 %  ▏
lived and died between two polls
────────────────────────────────────────────────────────────────────────────────────────────────
total                               4 h 12 min 33.4 s  15,153,362   100 %            18 min 20 s

Watched 21 h 26 min of 24 h device time (89.3 %)
Provisional: 18 min 20 s (1,100,000 ms) of the total lie in hours not recorded, or cut by the window

Not seen  2 h 34 min of device time is UNKNOWN; it is time, not amount: nothing is added for it
  UNKNOWN accounting-disabled  2 h 34 min
    the accounting was off
    what helps: sudo nvidia-smi -am 1

Still running  18 min 20 s not settled by the driver, inside the rows already
  service      pid  on                since                      so far
  ─────────────────────────────────────────────────────────────────────
  ollama   2488996  box GPU-5a3c1f2e  2026-07-27T19:00:00Z  18 min 20 s
  tts           77  box GPU-5a3c1f2e  UNKNOWN                   UNKNOWN
  UNKNOWN: no start time

Never accounted  opened the device before accounting was on: the driver will never settle them
  service  pid  on                        up for  memory
  ──────────────────────────────────────────────────────
  tts       77  box GPU-5a3c1f2e  25 h 1 min 1 s   5 GiB
  metered as observed, from first sight; what helps: restart the process"""


def test_table_reads_as_a_person_would_want_it(day: UsageReport, printed) -> None:
    """Named and unnamed in one table, then everything that was not seen, in words."""
    assert printed(usage_report.to_table(day, width=100)) == TABLE


def test_json_is_the_contract(day: UsageReport) -> None:
    """The keys and shapes of DESIGN's example, in its order; anything else follows after them."""
    document = usage_report.to_json(day)
    assert list(document)[:11] == [
        "meter", "unit", "since", "until", "by", "rows", "unattributed", "total", "unsettled", "unknown", "watched",
    ]  # fmt: skip
    assert {
        key: document[key] for key in ("meter", "unit", "since", "until", "by", "rows", "unattributed", "total")
    } == {
        "meter": "gpu.context",
        "unit": "ms",
        "since": "2026-07-27T00:00:00Z",
        "until": "2026-07-28T00:00:00Z",
        "by": ["service"],
        "rows": [
            {"service": "ollama", "quantity": 14249789, "settled": 13149789, "observed": 1100000},
            {"service": "xtts", "quantity": 6748, "settled": 6748, "observed": 0},
        ],
        "unattributed": {"quantity": 896825, "causes": {"before-watch": 773149, "between-samples": 123676}},
        "total": 15153362,
    }
    assert document["unsettled"] == {
        "quantity": 1100000,
        "rows": [
            {
                "service": "ollama", "pid": 2488996, "device": GPU, "host": "box", "since": "2026-07-27T19:00:00Z",
                "quantity": 1100000,
            },
            {
                "service": "tts", "pid": 77, "device": GPU, "host": "box", "since": None, "quantity": None,
                "missing": {"since": "no start time", "quantity": "no start time"},
            },
        ],
    }  # fmt: skip
    assert document["unknown"] == [
        {
            "reason": "accounting-disabled", "host": "box", "device": GPU, "since": "2026-07-27T00:00:00Z",
            "until": "2026-07-27T02:34:00Z", "seconds": 9240,
        }
    ]  # fmt: skip
    assert document["watched"] == {"seconds": 77160, "of": 86400}
    assert document["idle"] == {"seconds": 0, "why": ""}
    assert document["note"] == GPU_CONTEXT.sentence
    assert document["provisional"] == {"quantity": 1100000, "rows": [{"service": "ollama", "quantity": 1100000}]}
    assert document["problems"] == [{"code": "conflict", "message": "two lengths", "where": GPU}]
    json.dumps(document)


def test_nothing_known_is_null_and_unknown_never_zero(nothing_known: UsageReport, printed) -> None:
    """An unwatched day without rows has no total, in JSON and for eyes."""
    document = usage_report.to_json(nothing_known)
    assert document["total"] is None
    assert document["unattributed"] == {"quantity": None, "causes": {}}
    assert document["unsettled"] == {"quantity": None, "rows": []}
    text = printed(usage_report.to_table(nothing_known))
    assert "UNKNOWN: no row at all, and the time was not watched" in text
    assert "total" not in text
    assert usage_report.to_csv(nothing_known).count("\n") == 1


def test_csv_adds_up(day: UsageReport) -> None:
    """Rows, then one line a cause; the quantity column adds up to the total."""
    rows = list(csv.DictReader(io.StringIO(usage_report.to_csv(day))))
    assert [row["service"] for row in rows] == [
        "ollama", "xtts", "unattributed:before-watch", "unattributed:between-samples",
    ]  # fmt: skip
    assert sum(int(row["quantity"]) for row in rows) == day.total
    assert list(rows[0]) == ["service", "quantity", "unit", "settled", "observed", "provisional"]


def test_csv_of_several_groupings_and_of_none(day_fields: dict) -> None:
    """An unattributed line keeps the columns of the rows; without groupings there is a line for the named."""
    rows = (UsageRow(key=("a,b", "x"), quantity=1, settled=1, observed=0, provisional=0, busy_ms=3),)
    report = UsageReport(**{**day_fields, "by": ("service", "user"), "rows": rows})
    written = list(csv.reader(io.StringIO(usage_report.to_csv(report))))
    assert written[0] == ["service", "user", "quantity", "unit", "settled", "observed", "provisional", "busy_ms"]
    assert written[1] == ["a,b", "x", "1", "ms", "1", "0", "0", "3"]
    assert written[2] == ["unattributed:before-watch", "-", "773149", "ms", "773149", "0", "0", ""]
    by_hour = UsageReport(**{**day_fields, "by": ("hour", "service", "user"), "rows": ()})
    assert usage_report.to_csv(by_hour).splitlines()[1].startswith(",unattributed:before-watch,-,773149,ms,")
    key = ("2026-07-27T03:00:00Z", "2026-07-27")
    times = UsageReport(**{**day_fields, "by": ("hour", "day"), "rows": (row(key, 5),)})
    assert [line.split(",ms,")[0] for line in usage_report.to_csv(times).splitlines()[:3]] == [
        "hour,day,cause,quantity,unit,settled,observed,provisional",
        "2026-07-27T03:00:00Z,2026-07-27,,5",
        ",,unattributed:before-watch,773149",
    ]
    alone = UsageReport(**{**day_fields, "by": (), "rows": (UsageRow(
        key=(), quantity=1, settled=1, observed=0, provisional=0, busy_ms=Missing("none")),)})  # fmt: skip
    assert usage_report.to_csv(alone).splitlines()[:2] == [
        "total,quantity,unit,settled,observed,provisional",
        "named,1,ms,1,0,0",
    ]


def test_memory_is_shown_in_gib_hours_that_add_up(memory_day: UsageReport, printed) -> None:
    """Three thirds of a GiB-hour are printed with three decimals and make 1.000."""
    assert usage_report.to_json(memory_day)["product"] == {
        "unit": "GiB-hours",
        "rows": [
            {"service": "a", "quantity": "0.334"},
            {"service": "b", "quantity": "0.333"},
            {"service": "c", "quantity": "0.333"},
        ],
        "unattributed": {},
        "total": "1.000",
    }
    assert usage_report.to_json(memory_day)["rows"][0] == {"service": "a", "quantity": 1228800, "sampled": 1228800}
    text = printed(usage_report.to_table(memory_day))
    assert "0.334    1,228,800" in text
    assert "1.000    3,686,400" in text
    assert usage_report.to_csv(memory_day).splitlines()[1] == "a,1228800,MiB-seconds,1228800,0"


def test_busy_stands_beside(day_fields: dict, printed) -> None:
    """Where SM activity was sampled it has its own column, and JSON its own part."""
    busy = tuple(
        UsageRow(key=row.key, quantity=row.quantity, settled=row.settled, observed=row.observed, provisional=0,
                 busy_ms=5000 if row.key == ("ollama",) else row.busy_ms)
        for row in day_fields["rows"]
    )  # fmt: skip
    report = UsageReport(**{**day_fields, "rows": busy})
    assert usage_report.to_json(report)["busy"] == {
        "unit": "ms",
        "rows": [{"service": "ollama", "quantity": 5000}, {"service": "xtts", "quantity": None}],
        "unattributed": {"before-watch": None, "between-samples": None},
    }
    text = printed(usage_report.to_table(report))
    assert "busy" in text
    assert "none seen" in text


LONG = "script:/srv/lab/experiments/of-the-year/train_a_large_model.py by somebody.with.a.long.name"
KEYS = {
    "hour": "2026-07-27T03:00:00Z",
    "service": LONG,
    "device": GPU,
    "user": "somebody.with.a.long.name",
    "class": "H100-80GB-HBM3/1g.10gb",
    "day": "2026-07-27",
}
NUMBERS = (14_249_789, 552, 1_100_000)


def grouped(day_fields: dict, by: tuple[str, ...], *, busy: bool) -> UsageReport:
    """Three rows of the longest names and one unattributed line."""
    rows = tuple(
        UsageRow(key=tuple(KEYS[word] for word in by), quantity=number, settled=number - observed, observed=observed,
                 provisional=0, busy_ms=number // 2 if busy else Missing("none"))
        for number, observed in zip(NUMBERS, (0, 552, 77_777), strict=True)
    )  # fmt: skip
    return UsageReport(**{**day_fields, "by": by, "rows": rows})


@pytest.mark.parametrize("by", [
    ("hour",), ("service",), ("device",), ("hour", "service"), ("service", "hour"), ("hour", "day"),
    ("hour", "service", "user"), ("hour", "service", "device", "user"), ("service", "user", "device", "class"),
], ids=",".join)  # fmt: skip
@pytest.mark.parametrize("busy", [False, True], ids=["", "busy"])
def test_no_figure_is_cut_at_any_width(day_fields: dict, printed, by: tuple[str, ...], busy: bool) -> None:
    """At 40 to 140 columns each figure column that is there stands whole, unit included; the quantities always are."""
    report = grouped(day_fields, by, busy=busy)
    total = report.total
    assert isinstance(total, int)
    whole = [*NUMBERS, *(line.quantity for line in report.unattributed), total]
    columns = {
        "time": [duration_ms(each) for each in whole],
        "ms": [count(each) for each in whole],
        "share": [*(percent(Fraction(each, total)) for each in whole[:-1]), "100 %"],
        "busy": [*(duration_ms(each // 2) for each in NUMBERS), "none seen", "none seen"],
        "observed": [duration_ms(552), duration_ms(77_777), duration_ms(552 + 77_777)],
    }
    for width in range(40, 141):
        text = printed(usage_report.to_table(report, width=width, unseen_too=False), width)
        assert all(len(each) <= width for each in text.splitlines()), width
        shown = text.split("\n\n")[1].splitlines()
        rule = next(place for place, each in enumerate(shown) if each.startswith("─"))
        head, lines = shown[rule - 1], shown[rule + 1 :]
        assert "ms" in head.split()
        found = [word for word in columns if word in head.split()]
        for word in found:
            # a figure column ends where its heading ends: what stands there must be a figure of it, and whole
            end = re.search(rf"(?<!\S){word}(?!\S)", head).end()  # type: ignore[union-attr]
            ends = [line[:end] for line in lines if len(line) >= end]
            for figure in columns[word]:
                assert any(re.search(rf"(?:^|\s){re.escape(figure)}$", each) for each in ends), (width, word, figure)
        if width >= 120 and len(by) == 1:
            assert found == [word for word in columns if word != "busy" or busy]


def test_equal_amounts_show_equal_shares(day_fields: dict, printed) -> None:
    """Eleven equal parts are 9.1 % each, in usage as in blind; they need not add up to 100."""
    rows = tuple(row((f"s{place}",), 1000) for place in range(11))
    report = UsageReport(**{**day_fields, "rows": rows, "unattributed": ()})
    assert printed(usage_report.to_table(report)).count("9.1 %") == 11


def test_times_and_devices_are_columns_of_their_own(day_fields: dict, printed) -> None:
    """Grouped by hour and device, rows keep their order, and no bar is drawn."""
    rows = tuple(
        UsageRow(key=(f"2026-07-27T{hour:02}:00:00Z", GPU), quantity=hour + 1, settled=hour + 1, observed=0,
                 provisional=0, busy_ms=Missing("none"))
        for hour in (3, 4)
    )  # fmt: skip
    text = printed(usage_report.to_table(UsageReport(**{**day_fields, "by": ("hour", "device"), "rows": rows})))
    assert text.index("T03:00:00Z  ") < text.index("T04:00:00Z  ")
    assert GPU not in text.split("Watched")[0]
    assert "█" not in text


def test_hostile_names_reach_no_terminal(day_fields: dict, printed) -> None:
    """A command line is neither markup nor control sequence."""
    evil = "[red]x[/red] \x1b[2J\x07\n\ud800"
    rows = (UsageRow(key=(evil,), quantity=1, settled=1, observed=0, provisional=0, busy_ms=Missing("none")),)
    report = UsageReport(**{**day_fields, "rows": rows})
    text = printed(usage_report.to_table(report))
    assert "[red]x[/red]" in text
    assert "\x1b" not in text
    assert r"\x1b[2J\x07\n\ud800" in text
    usage_report.to_csv(report).encode()
    json.dumps(usage_report.to_json(report)).encode()


def test_everything_watched_says_so(day_fields: dict, printed) -> None:
    """A day without a gap ends with that sentence."""
    report = UsageReport(
        **{**day_fields, "unknown": (), "sizes": (), "watched": Watched(seconds=86_400, of=86_400), "unsettled": ()}
    )
    text = printed(usage_report.to_table(report))
    assert "Watched 24 h of 24 h device time (100 %)" in text
    assert "Not seen  nothing: the whole time was watched" in text
    assert "Still running" not in text


QUANTITIES = st.lists(st.integers(min_value=-100, max_value=10**12), max_size=8)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_many_groupings_leave_out_spare_columns_first(day_fields: dict, printed, width: int) -> None:
    """With five groupings there is no room for shares; the quantities still stand whole."""
    by = ("service", "user", "device", "class", "hour")
    key = ("ollama", "al", GPU, "RTX-4090", "2026-07-27T03:00:00Z")
    rows = (UsageRow(key=key, quantity=14_249_789, settled=0, observed=14_249_789, provisional=0, busy_ms=77_777),)
    report = UsageReport(**{**day_fields, "by": by, "rows": rows, "unattributed": ()})
    table = printed(usage_report.to_table(report, width=width), width).split("Watched")[0]
    assert "14,249,789" in table
    assert "share" not in table


@settings(max_examples=80)
@given(named=QUANTITIES, unnamed=QUANTITIES, sampled=st.booleans())
def test_json_and_csv_add_up(named: list[int], unnamed: list[int], sampled: bool) -> None:
    """Total = rows + unattributed in every format, and GiB-hours add up to their own total."""
    unit, meter = ("MiB-seconds", "gpu.memory") if sampled else ("ms", "gpu.context")
    none = Missing("none")
    report = UsageReport(
        meter=meter, unit=unit, note="", sampled=sampled, since_us=0, until_us=1, by=("service",),
        rows=tuple(
            UsageRow(key=(f"s{n}",), quantity=q, settled=0 if sampled else q, observed=0, provisional=0, busy_ms=none)
            for n, q in enumerate(named)
        ),
        unattributed=tuple(
            UnattributedLine(cause=f"c{n}", meaning="", quantity=q, settled=q, observed=0, provisional=0, busy_ms=none)
            for n, q in enumerate(unnamed)
        ),
        unsettled=(), unknown=(), sizes=(), watched=Watched(seconds=1, of=1), never_accounted=(), problems=(),
    )  # fmt: skip
    document = json.loads(json.dumps(usage_report.to_json(report)))
    assert (
        document["total"] == sum(each["quantity"] for each in document["rows"]) + document["unattributed"]["quantity"]
    )
    assert document["unattributed"]["quantity"] == sum(document["unattributed"]["causes"].values())
    sheet = csv.DictReader(io.StringIO(usage_report.to_csv(report)))
    assert sum(int(each["quantity"]) for each in sheet) == document["total"]
    if sampled:
        product = document["product"]
        parts = [each["quantity"] for each in product["rows"]] + list(product["unattributed"].values())
        assert sum(thousandths(part) for part in parts) == thousandths(product["total"])


def thousandths(text: str) -> int:
    whole, fraction = text.lstrip("-").split(".")
    return (int(whole) * 1000 + int(fraction)) * (-1 if text.startswith("-") else 1)
