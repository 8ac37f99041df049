"""The tables of bench_naming.py.

In: its result. Out: lines.
"""

from __future__ import annotations

from typing import Any, TextIO


def say_all(result: dict[str, Any], out: TextIO) -> None:
    """Every part that was run."""

    def say(line: str = "") -> None:
        print(line, file=out)

    loads = (" ".join(f"{one:g}" for one in result[key]) for key in ("load_before", "load_after"))
    say(f"{result['machine']}; load averages before {next(loads)}, after {next(loads)}")
    for part, table in (("shares", _shares), ("storm", _storm), ("watchers", _watchers), ("idle", _idle)):
        if part in result:
            say()
            for line in table(result[part]):
                say(line)
    say()
    for sentence in result["broken"] or ["all limits hold"]:
        say(f"LIMIT BROKEN: {sentence}" if result["broken"] else sentence)


def _shares(part: dict[str, Any]) -> list[str]:
    lengths = list(part["lived_ms"])
    lived = ", ".join(f"{part['lived_ms'][ms]:g}" for ms in lengths)
    lines = [
        f"{part['count']} processes of each length, {part['asked_a_second']:g} a second asked, "
        f"{', '.join(map(str, part['started_a_second']))} had; the connector is read "
        + ("at real-time priority" if part["real_time"] else "WITHOUT real-time priority"),
        f"they lived {lived} ms (median); one of no length lives {part['floor_ms']:g} ms",
        "",
        f"{'named':20}" + "".join(f"{f'{ms} ms':>12}" for ms in lengths) + "   missed, by cause",
    ]
    for name, shares in part["sources"].items():
        cells = "".join(f"{100 * shares[ms]['named'] / shares[ms]['of']:>10.2f} %" for ms in lengths)
        causes = "; ".join(f"{ms} ms: {_causes(shares[ms])}" for ms in lengths if shares[ms]["misses"])
        lines.append(f"{name:20}{cells}   {causes}".rstrip())
    lines += [f"{name:20}left out: {why}" for name, why in part["left_out"].items()]
    spent = ", ".join(f"{way} {us:g} us" for way, us in part["user_us_an_event"].items())
    lines.append(f"user CPU of the whole agent for each event of the crowd: {spent}")
    return lines


def _causes(share: dict[str, Any]) -> str:
    return ", ".join(f"{count} {cause}" for cause, count in sorted(share["misses"].items()))


def _storm(part: dict[str, Any]) -> list[str]:
    unknown = ", ".join(f"{reason} {seconds} s" for reason, seconds in part["unknown_seconds"].items()) or "nothing"
    contexts = f"{part['named']} contexts named, {part['settled']} known by rows of the driver"
    how = f"{part['at_once']} alive and ending together, {part['a_second']} a second"
    return [
        f"storm of {part['of']}, {how}; all is written {part['caught_up_s']:g} s after its end",
        f"  {part['identities']} identities kept; {contexts}, {part['observed']} by events and looks",
        f"  missed: {_causes(part) or 'none'}; UNKNOWN: {unknown}",
    ]


def _watchers(rows: list[dict[str, Any]]) -> list[str]:
    heads = ("events", "us/event", "bare", "ratio", "with system")
    lines = [f"{'user CPU of a watcher':34}" + "".join(f"{head:>12}" for head in heads)]
    for row in rows:
        name = f"{row['source']}, " + ("each opens a GPU and is told" if row["opening"] else "none opens a GPU")
        watcher, bare = (row[side]["user_us_an_event"] for side in ("watcher", "bare"))
        cells = (
            f"{row['events']:>12}{watcher:>12.2f}{bare:>12.2f}{row['ratio']:>12.2f}{row['ratio_with_system']:>12.2f}"
        )
        lost = "".join(f"; {side} lost {row[side]['lost']}" for side in ("watcher", "bare") if row[side]["lost"])
        lines.append(f"{name:34}{cells}{lost}")
    return lines


def _idle(part: dict[str, Any]) -> list[str]:
    others = f"{part['processes_started_meanwhile']} processes and threads were started meanwhile by others"
    lines = [f"idle, {part['seconds']:g} s, a look a second; {others}"]
    for way, spent in part["cpu_ms_a_second"].items():
        line = f"  {way:12}{spent:>8.2f} ms of CPU a second"
        if way in part["beyond_base_ms_a_second"]:
            low, high = part["beyond_base_from_to"][way]
            beyond = part["beyond_base_ms_a_second"][way]
            line += f"; {beyond:.2f} beyond the agent that names nobody, {low:.2f} to {high:.2f}"
        lines.append(line)
    return lines
