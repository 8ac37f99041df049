"""One row of a trace: the run that it tells, or the problem that keeps it out."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gpuledger.model.addresses import is_address
from gpuledger.model.lifecycle import CPU, Placement
from gpuledger.sources.trace_map import parse
from gpuledger.sources.trace_rows import LeftOut, RowReader, Run

COLUMNS = "id, start, end, devices, class"


def run(row: str, columns: str = COLUMNS, more: str = "") -> Run:
    """The run of a row whose columns are called by their words."""
    words = columns.split(", ")
    # a label is no word of the map, only a column
    mapped = ", ".join(f"{word}: {word}" for word in words if word != "qos")
    made = parse(f"columns: {{{mapped}}}\n{more}", path="m")
    return RowReader(made, words).read(row.split(","), 7)


def left_out(row: str, columns: str = COLUMNS, more: str = "") -> str:
    with pytest.raises(LeftOut) as caught:
        run(row, columns, more)
    assert caught.value.problem.message
    return caught.value.problem.code


def placed(row: str, columns: str, more: str = "") -> tuple[int, Fraction]:
    placement = run(row, columns, more).placement
    assert placement is not None
    return placement.count, placement.share


def test_a_row_is_a_run() -> None:
    """Everything it can say, in one."""
    found = run(
        "j,1,2,5,2,500,A100,V100|A100,ann,vision,p,n1,eu,whole,Failed,LS",
        "id, pending, start, end, devices, share, class, requested_class, user, team, project, machine, region, pool, "
        "outcome, qos",
        "units: {share: milli}\nfailed: [Failed]\nlabels: {qos: qos}\nconstants: {labels: {trace: t}}\nprefix: t/\n"
        "classes: {A100: A100-40GB}\n",
    )
    assert found == Run(
        line=7, workload="t/j", pending_us=1_000_000, start_us=2_000_000, end_us=5_000_000, failed=True,
        placement=Placement(
            class_name="A100-40GB", region="eu", machine="n1", pool="whole", count=2, share=Fraction(1, 2)
        ),
        owner=("ann", "vision", "p"), requested_class="V100|A100", labels=(("qos", "LS"), ("trace", "t")), told=(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("share", "unit", "part"),
    [("1", "fraction", Fraction(1)), ("0.25", "fraction", Fraction(1, 4)), ("1/3", "fraction", Fraction(1, 3)),
     ("0.1", "fraction", Fraction(1, 10)), (".5", "fraction", Fraction(1, 2)),
     ("1e-1", "fraction", Fraction(1, 10)), ("470", "milli", Fraction(47, 100)), ("1", "milli", Fraction(1, 1000)),
     ("25", "percent", Fraction(1, 4)), ("12.5 %", "percent", Fraction(1, 8)), ("100%", "percent", Fraction(1))],
)  # fmt: skip
def test_shares_are_exact_fractions(share: str, unit: str, part: Fraction) -> None:
    """A tenth is a tenth."""
    columns = f"{COLUMNS}, share"
    assert placed(f"j,0,9,2,A100,{share}", columns, f"units: {{share: {unit}}}") == (2, part)


@pytest.mark.parametrize(
    ("unit", "shares"),
    [("fraction", ["0", "0.0", "1.01", "5/4", "1/0", "-1", "", "25%", "half", "1e-", "1e1", "NaN"]),
     ("milli", ["0", "1001", "-470", "25%"]), ("percent", ["0", "0%", "100.1", "-5", "%"])],
)  # fmt: skip
def test_a_share_is_above_0_and_at_most_1(unit: str, shares: list[str]) -> None:
    """An empty cell is no whole device, where a column tells shares."""
    for share in shares:
        assert left_out(f"j,0,9,2,A100,{share}", f"{COLUMNS}, share", f"units: {{share: {unit}}}") == "bad-share"


@pytest.mark.parametrize(
    ("devices", "unit", "found"),
    [("4", "one", (4, Fraction(1))), ("2.0", "one", (2, Fraction(1))), ("0.5", "one", (1, Fraction(1, 2))),
     ("50", "percent", (1, Fraction(1, 2))), ("200.0", "percent", (2, Fraction(1)))],
)  # fmt: skip
def test_devices_may_be_told_in_parts(devices: str, unit: str, found: tuple[int, Fraction]) -> None:
    """Half a device is one device held by half."""
    assert placed(f"j,0,9,{devices},A100", COLUMNS, f"units: {{devices: {unit}}}") == found


@pytest.mark.parametrize("devices", ["", "-1", "1.5", "four", "5000", "1e4", "1e-2x"])
def test_a_number_of_devices_must_be_one(devices: str) -> None:
    """One and a half could be three shapes; five thousand are a mistake."""
    assert left_out(f"j,0,9,{devices},A100") in {"bad-devices", "bad-placement"}


def test_instances_multiply_devices() -> None:
    """Three workers of a quarter each hold a quarter of three."""
    columns = f"{COLUMNS}, share, instances"
    assert placed("j,0,9,1,A100,25,3", columns, "units: {share: percent}") == (3, Fraction(1, 4))
    assert left_out("j,0,9,1,A100,25,2.5", columns, "units: {share: percent}") == "bad-devices"


def test_devices_may_be_named() -> None:
    """By their ids, in any order, which are counted; a count beside them must agree."""
    columns = "id, start, end, device_ids, class"
    placement = run("j,0,9,GPU-b;GPU-a;GPU-b,A100", columns).placement
    assert placement == Placement(class_name="A100", devices=("GPU-a", "GPU-b"), count=2)
    assert left_out("j,0,9,GPU-a,A100,2", f"{columns}, devices") == "bad-devices"


def test_a_list_of_devices_is_read_whatever_stands_around_it() -> None:
    """Brackets, quotes and ranges made devices of such names, silently, and a wrong number of them."""
    columns = "id, start, end, device_ids, class, machine"
    for cell in ("[0; 1; 2; 3]", "['0' '1' '2' '3']", "0-3", "gpu0-2|3"):
        placement = run(f"j,0,9,{cell},A100,n1", columns).placement
        assert placement == Placement(
            class_name="A100", machine="n1", devices=("n1/0", "n1/1", "n1/2", "n1/3"), count=4
        )
    for cell in ("None", "[]", "-", "3-1", "0;0"):
        assert left_out(f"j,0,9,{cell},A100,n1", columns) == "bad-devices"
    assert left_out("j,0,9,None,A100,n1,0", f"{columns}, devices") == "no-devices"


def test_what_ran_before_the_trace_began_is_counted_from_its_beginning() -> None:
    """Only if the map says so, and of nobody who is told to have asked later and never ran."""
    more = "begins_at: 100\nrows: {without_start: begun}\n"
    found = run("j,,900,2,A100,", f"{COLUMNS}, pending", more)
    assert (found.pending_us, found.start_us, found.end_us) == (None, 100_000_000, 900_000_000)
    assert left_out("j,,900,2,A100,500", f"{COLUMNS}, pending", more) == "not-scheduled"
    assert left_out("j,,50,2,A100,", f"{COLUMNS}, pending", more) == "end-before-start"
    assert left_out("j,,900,2,A100") == "not-scheduled"


def test_a_duration_with_colons_says_how_to_declare_it() -> None:
    """Nothing is guessed; what to write is told."""
    columns = "id, start, duration, devices, class"
    with pytest.raises(LeftOut, match=r"units: \{duration: clock\}"):
        run("j,0,1:30:00,1,A100", columns)
    assert run("j,0,1:30:00,1,A100", columns, "units: {duration: clock}").end_us == 5_400_000_000


def test_rows_without_devices_are_counted_as_cpu_only_if_declared() -> None:
    """Else they held nothing that is metered here. An empty cell is 0 only by declaration."""
    assert left_out("j,0,9,0,A100") == "no-devices"
    more = "rows: {without_devices: cpu}\nconstants: {devices: 0}\n"
    for devices in ("0", ""):
        assert run(f"j,0,9,{devices},A100", COLUMNS, more).placement == Placement(class_name=CPU, count=0)


def test_without_a_class_it_is_kept_unplaced() -> None:
    """It ran, nobody knows on what: told, never a class of nothing."""
    found = run("j,0,9,1,")
    assert found.placement is None
    assert [problem.code for problem in found.told] == ["no-class"]
    assert run("j,0,9,1,", COLUMNS, "constants: {class: GPU}").placement == Placement(class_name="GPU")


@pytest.mark.parametrize(
    ("row", "code"),
    [(",0,9,1,A", "no-id"), ("j,,9,1,A", "not-scheduled"), ("j,0,,1,A", "no-end"), ("j,9,0,1,A", "end-before-start"),
     ("j,x,9,1,A", "bad-time"), ("j,0,x,1,A", "bad-time"), ("j,-1,9,1,A", "bad-time"), ("j\x1b[2J,0,9,1,A", "bad-name"),
     ("j,0,9,1,A\x07", "bad-name"), ("j,0,99999999999,1,A", "bad-time")],
)  # fmt: skip
def test_a_row_that_cannot_be_so_is_left_out(row: str, code: str) -> None:
    """Each for a reason of its own."""
    assert left_out(row) == code


def test_a_span_of_nothing_is_a_run_of_nothing() -> None:
    """Half-open: it begins and ends at once."""
    found = run("j,9,9,1,A")
    assert found.start_us == found.end_us == 9_000_000


def test_what_means_not_told_is_declared() -> None:
    """A dash, a None, a 0: only for the word it is declared for."""
    more = "missing: {end: ['-', 0]}\nrows: {without_end: open}\n"
    assert run("j,0,-,1,A", COLUMNS, more).end_us is None
    assert run("j,0,0,1,A", COLUMNS, more).end_us is None
    assert left_out("j,-,9,1,A", COLUMNS, more) == "bad-time"


@pytest.mark.parametrize(("censored", "end"), [("open", None), ("ended", 9_000_000)])
def test_a_row_that_ends_with_the_trace_is_what_was_declared(censored: str, end: int | None) -> None:
    """It ran on, or it ended just then."""
    more = f"censored_at: 9\nrows: {{censored: {censored}, without_end: open}}\n"
    assert run("j,0,9,1,A", COLUMNS, more).end_us == end
    assert run("j,0,8,1,A", COLUMNS, more).end_us == 8_000_000
    assert run("j,0,,1,A", COLUMNS, more).end_us is None
    assert left_out("j,10,,1,A", COLUMNS, more) == "after-trace-end"
    assert [problem.code for problem in run("j,0,10,1,A", COLUMNS, more).told] == ["after-trace-end"]


def test_a_row_that_never_ran_may_be_kept_as_waiting() -> None:
    """From its asking to its giving up; without a placement, which it never had."""
    columns = f"{COLUMNS}, pending"
    more = "rows: {without_start: pending, without_devices: cpu}"
    found = run("j,,9,1,A,3", columns, more)
    assert (found.pending_us, found.start_us, found.end_us, found.placement) == (3_000_000, None, 9_000_000, None)
    assert found.since_us == 3_000_000
    assert left_out("j,,9,1,A,", columns, more) == "no-times"


@pytest.mark.parametrize(("pending", "code"), [("x", "bad-time"), ("5", "pending-after-start")])
def test_a_bad_time_of_asking_costs_the_waiting_only(pending: str, code: str) -> None:
    """The run is kept."""
    found = run(f"j,4,9,1,A,{pending}", f"{COLUMNS}, pending")
    assert (found.pending_us, found.start_us) == (None, 4_000_000)
    assert [problem.code for problem in found.told] == [code]


def test_devices_named_by_address_are_those_of_their_machine() -> None:
    """Card 65 of one machine is not that of another; of no machine at all it is nobody's."""
    columns = "id, start, end, device_ids, machine, class"
    found = run("j,1,2,0000:65:00.0;0000:b3:00.0,n1,A", columns).placement
    assert found is not None
    assert found.devices == ("n1/0000:65:00.0", "n1/0000:b3:00.0")
    assert left_out("j,1,2,0000:65:00.0,,A", columns) == "bad-placement"


@pytest.mark.parametrize("ids", ["0;1", "gpu0;gpu1", "cuda:0;cuda:1", "/dev/nvidia0;nvidia1", "GPU0;GPU1", "0;gpu0;1"])
def test_devices_named_by_number_are_those_of_their_machine(ids: str) -> None:
    """Card 0 of one machine is not that of another, however it is spelled, and nobody hands it through by that."""
    columns = "id, start, end, device_ids, machine, class"
    found = run(f"j,1,2,{ids},n1,A", columns).placement
    assert found == Placement(class_name="A", machine="n1", devices=("n1/0", "n1/1"), count=2)
    assert not any(is_address(device) for device in found.devices)


def test_devices_numbered_on_no_machine_are_counted_and_not_named() -> None:
    """Else all cards 0 of a cluster would be one. Every row is told; a UUID beside them changes nothing."""
    columns = "id, start, end, device_ids, class"
    for ids, count in (("0;1;3", 3), ("0;GPU-8c1f", 2)):
        found = run(f"j,1,2,{ids},A", columns)
        assert found.placement == Placement(class_name="A", count=count)
        assert [problem.code for problem in found.told] == ["no-machine"]


@pytest.mark.parametrize("machine", ["n1", ""])
def test_a_number_that_stands_twice_leaves_the_names_out_and_not_the_row(machine: str) -> None:
    """Its devices are counted as the row tells them; where it does not, what to add is told."""
    columns = "id, start, end, devices, device_ids, machine, class"
    for count in (1, 2):
        found = run(f"j,1,2,{count},0;0,{machine},A", columns)
        assert found.placement == Placement(class_name="A", machine=machine, count=count)
        assert [problem.code for problem in found.told] == ["device-twice"]
    with pytest.raises(LeftOut, match="map the column of their number as `devices`") as caught:
        run(f"j,1,2,,0;0,{machine},A", columns)
    assert caught.value.problem.code == "bad-devices"


def test_a_word_for_no_device_is_no_number_without_a_machine() -> None:
    """A count beside `none` is a count, and no machine is missing."""
    found = run("j,1,2,2,none,,A", "id, start, end, devices, device_ids, machine, class")
    assert (found.placement, found.told) == (Placement(class_name="A", count=2), ())


def test_durations_stand_for_ends() -> None:
    """Hours of work from a start on; across the night of the clocks they are what they are."""
    columns = "id, start, duration, devices, class"
    more = "units: {time: iso, duration: h}\nzone: Europe/Berlin\n"
    found = run("j,2026-10-25 00:00,6,1,A", columns, more)
    assert found.end_us is not None
    assert found.end_us - found.since_us == 6 * 3_600_000_000
    assert left_out("j,2026-10-25 00:00,-6,1,A", columns, more) == "bad-time"
    assert left_out("j,2026-10-25 00:00,,1,A", columns, more) == "no-end"


def test_how_long_a_run_was_says_nothing_of_one_that_never_ran() -> None:
    """A trace writes 0 there; it waited until its end, and without one nothing tells how long."""
    columns, more = f"{COLUMNS}, pending, duration", "rows: {without_start: pending, without_end: open}\n"
    found = run("j,,60,1,A,10,0", columns, more)
    assert (found.pending_us, found.start_us, found.end_us, found.told) == (10_000_000, None, 60_000_000, ())
    assert run("j,,,1,A,10,0", columns, more).end_us is None


def test_local_times_that_came_twice_are_solved_only_where_one_reading_is_possible() -> None:
    """From 02:50 to 02:10 there is one way; from 02:10 to 02:50 there are three."""
    more = "units: {time: iso}\nzone: Europe/Berlin\n"
    found = run("j,2026-10-25 02:50,2026-10-25 02:10,1,A", COLUMNS, more)
    assert found.end_us is not None
    assert found.end_us - found.since_us == 20 * 60_000_000
    assert left_out("j,2026-10-25 02:10,2026-10-25 02:50,1,A", COLUMNS, more) == "ambiguous-local-time"
    assert left_out("j,2026-10-25 02:10,2026-10-25 05:00,1,A", COLUMNS, more) == "ambiguous-local-time"
    assert left_out("j,2026-03-29 02:10,2026-03-29 05:00,1,A", COLUMNS, more) == "bad-time"
    declared = run("j,2026-10-25 02:10,2026-10-25 05:00,1,A", COLUMNS, more + "repeated_hour: second\n")
    assert declared.end_us is not None
    assert declared.end_us - declared.since_us == 170 * 60_000_000


def test_a_length_that_is_told_decides_which_of_two_hours_it_was() -> None:
    """Start + duration = end; where both readings agree, the length is sure, and the place is told to be in doubt."""
    more = "units: {time: iso, duration: min}\nzone: Europe/Berlin\n"
    both = "id, start, end, duration, devices, class"
    first = run("j,2026-10-25 02:10,2026-10-25 05:00,230,1,A", both, more)
    second = run("j,2026-10-25 02:10,2026-10-25 05:00,170,1,A", both, more)
    assert first.end_us == second.end_us
    assert second.since_us - first.since_us == 60 * 60_000_000
    assert first.told == second.told == ()
    alone = "id, start, duration, devices, class"
    for row, columns in (
        ("j,2026-10-25 02:10,40,1,A", alone), ("j,2026-10-25 02:10,2026-10-25 02:50,40,1,A", both),
    ):  # fmt: skip
        found = run(row, columns, more)
        assert found.end_us is not None
        assert (found.since_us, found.end_us - found.since_us) == (first.since_us, 40 * 60_000_000)
        assert [problem.code for problem in found.told] == ["ambiguous-local-time"]
    assert left_out("j,2026-10-25 02:10,2026-10-25 05:00,,1,A", both, more) == "ambiguous-local-time"
    assert left_out("j,2026-10-25 02:10,2026-10-25 05:00,20,1,A", both, more) == "ambiguous-local-time"


def test_a_duration_beside_an_end_must_agree() -> None:
    """Else start and end count, and it is told; where no end is told the duration stands for it."""
    columns = "id, start, end, duration, devices, class"
    found = run("j,1,5,9,1,A", columns)
    assert (found.end_us, [problem.code for problem in found.told]) == (5_000_000, ["elapsed-differs"])
    assert run("j,1,5,4,1,A", columns).told == ()
    assert run("j,1,,4,1,A", columns).end_us == 5_000_000


def test_a_time_of_asking_that_came_twice_costs_the_waiting_only() -> None:
    """How long it waited cannot be known to the hour."""
    found = run(
        "j,2026-10-25 05:00,2026-10-25 06:00,1,A,2026-10-25 02:10",
        f"{COLUMNS}, pending",
        "units: {time: iso}\nzone: Europe/Berlin\n",
    )
    assert found.pending_us is None
    assert [problem.code for problem in found.told] == ["ambiguous-local-time"]


def test_several_columns_make_one_id() -> None:
    """A job and its attempt."""
    made = parse("columns: {id: [job, try], start: s, end: e, devices: d, class: c}", path="m")
    reader = RowReader(made, ["job", "try", "s", "e", "d", "c"])
    assert reader.read(["17", " 2", "0", "9", "1", "A"], 2).workload == "17/2"
    with pytest.raises(LeftOut, match="without an id"):
        reader.read(["", " ", "0", "9", "1", "A"], 3)


def test_decimal_commas_are_declared() -> None:
    """Of a spreadsheet that is written so."""
    made = parse("columns: {id: i, start: s, end: e, devices: d, class: c}\ndecimal: ','\n", path="m")
    found = RowReader(made, ["i", "s", "e", "d", "c"]).read(["j", "0,5", "9", "0,25", "A"], 2)
    assert found.placement == Placement(class_name="A", share=Fraction(1, 4))
    assert found.start_us == 500_000
