"""Which identities are kept: of processes that touched a device, each once, and of nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gpuledger.model.identity import IdentityText
from gpuledger.model.readings import Named, NamesLook, Unread
from gpuledger.watching.identities import MOST_UNTOUCHED, Identities

T0 = 1_790_000_000_000_000
SECOND = 1_000_000


def named(pid: int, ticks: int = 7, *, born: float = 0, seen: float = 0, number: int = 0) -> Named:
    return Named(
        pid=pid, start_ticks=ticks, exec_number=number, started_at_us=T0 + int(born * SECOND),
        seen_at_us=T0 + int(seen * SECOND), text=IdentityText(exe="/usr/bin/thing", command=f"thing {ticks}"),
    )  # fmt: skip


class Keeping:
    """What is kept, look after look."""

    def __init__(self) -> None:
        self.identities = Identities(host="box", boot_id="boot", key_of=lambda text: text.command)

    def look(
        self,
        fresh: Iterable[Named] = (),
        *,
        unread: Iterable[Unread] = (),
        alive: Iterable[Named] = (),
        living: Iterable[int] = (),
        starts: dict[int, list[float]] | None = None,
        touched: Iterable[tuple[int, int]] = (),
        at: float = 60,
    ) -> list[Any]:
        names = NamesLook(
            method="ebpf", current={one.pid: one for one in alive}, fresh=tuple(fresh), unread=tuple(unread)
        )
        begun = {pid: [T0 + int(each * SECOND) for each in some] for pid, some in (starts or {}).items()}
        rows = self.identities.look(names, set(living), begun, set(touched), at_us=T0 + at * SECOND)
        return [
            (row.pid, row.start_ticks, row.exec_number, row.text_key, (row.seen_at_us - T0) / SECOND) for row in rows
        ]


def test_who_touched_nothing_is_not_kept() -> None:
    """Told, because its pid was asked for; alive, and on no device."""
    assert Keeping().look([named(7)], alive=[named(7)]) == []


def test_a_touch_is_a_context_a_row_or_an_open() -> None:
    """Each by itself keeps the name; another start of the same pid does not."""
    kept = [(7, 7, 0, "thing 7", 0.0)]
    assert Keeping().look([named(7)], living=[7]) == kept
    assert Keeping().look([named(7)], starts={7: [0]}) == kept
    assert Keeping().look([named(7)], touched=[(7, 7)]) == kept
    assert Keeping().look([named(7)], touched=[(7, 8)]) == []
    assert Keeping().look([named(7, born=9)], starts={7: [0]}) == []
    assert Keeping().look([named(7)], alive=[named(7, 8)], living=[7]) == []


def test_a_touch_that_comes_later_finds_who_was_told_before() -> None:
    """The driver settles its row a look after the exit; then it is kept, and only once."""
    keeping = Keeping()
    assert keeping.look([named(7), named(8)]) == []
    assert keeping.look(starts={7: [0]}) == [(7, 7, 0, "thing 7", 0.0)]
    assert keeping.look(starts={7: [0]}) == []
    assert keeping.look(touched=[(8, 7)]) == [(8, 7, 0, "thing 7", 0.0)]


def test_what_waits_for_a_touch_has_an_end() -> None:
    """The longest waiting go first."""
    keeping = Keeping()
    keeping.look([named(pid) for pid in range(1, MOST_UNTOUCHED + 2)])
    assert keeping.look(touched=[(1, 7), (2, 7)]) == [(2, 7, 0, "thing 7", 0.0)]


def test_a_process_that_goes_on_was_alive_until_now() -> None:
    """Its row would end its proven life at the first sight, and the next row of it would have no name."""
    keeping = Keeping()
    assert len(keeping.look([named(7)], living=[7])) == 1
    assert keeping.look(alive=[named(7)], starts={7: [30]}) == [(7, 7, 0, "thing 7", 60.0)]


def test_an_earlier_holder_of_the_pid_does_not_stand_for_the_living_one() -> None:
    """A dead one is told in the same look: the living one's life goes on all the same."""
    kept = Keeping().look([named(7, 7, seen=1)], alive=[named(7, 8, born=2)], starts={7: [5]})
    assert kept == [(7, 7, 0, "thing 7", 1.0), (7, 8, 0, "thing 8", 60.0)]


def test_a_program_that_could_not_be_read_is_kept_without_a_text() -> None:
    """It was there, under no name; also when its row comes later."""
    unread = Unread(pid=7, start_ticks=7, exec_number=1, started_at_us=T0, seen_at_us=T0 + SECOND)
    assert Keeping().look(unread=[unread], starts={7: [0]}) == [(7, 7, 1, "", 1.0)]
    assert Keeping().look(unread=[unread], touched=[(7, 7)]) == [(7, 7, 1, "", 1.0)]
    keeping = Keeping()
    assert keeping.look(unread=[unread]) == []
    assert keeping.look(starts={7: [0]}) == [(7, 7, 1, "", 1.0)]
