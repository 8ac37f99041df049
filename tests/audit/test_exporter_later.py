"""Two scrapes of one endpoint."""

from __future__ import annotations

from exporter_texts import Exporter, duplicated, mapped
from gpuledger.audit.exporter import audit_exporter
from gpuledger.audit.exporter_later import judged_together, moved_between
from gpuledger.audit.exporter_rows import lay_out
from gpuledger.audit.exporter_scope import Judgement, Scope, judge
from gpuledger.audit.exporter_scrape import Scrape
from gpuledger.audit.exposition import read_exposition
from gpuledger.model.findings import Written


def scrape(text: str) -> Scrape:
    exposition = read_exposition(text)
    rows = lay_out(exposition)
    return Scrape(path="u", exposition=exposition, rows=rows, judgement=judge(rows))


def judgement(scope: Scope) -> Judgement:
    return Judgement(scope=scope, why=f"because {scope}", units=())


def test_what_moved_is_counted_by_series() -> None:
    """Figures that changed, counters of energy among them, series that came and went."""
    before = scrape(Exporter().device(util=5, energy=100, power=60).text())
    after = scrape(Exporter().device(util=5, energy=160).pod("a/x", util=5).text())
    moved = moved_between(before, after)
    assert (moved.both, moved.moved, moved.energy, moved.gone, moved.new) == (2, 1, (1, 1), 1, 1)


def test_a_still_endpoint_under_power() -> None:
    """Told where the device works or draws power; an endpoint without figures is not still."""
    busy = Written(path="u", text=Exporter().device(power=212, energy=9).text())
    report = audit_exporter(busy, later=busy, seconds=40)
    (finding,) = [each for each in report.findings if each.check.id == "exporter/nothing-moved"]
    assert finding.message == "none of 2 figures moved in 40 seconds, counters of energy among them"
    idle = Written(path="u", text=Exporter().device(util=0).text())
    assert not [each for each in audit_exporter(idle, later=idle).findings if "moved" in each.check.id]


def test_two_judgements_become_one() -> None:
    """What either could tell; a contradiction is told as one."""
    process, device, unknown = (judgement(scope) for scope in (Scope.PROCESS, Scope.DEVICE, Scope.CANNOT_TELL))
    assert judged_together(process, unknown).scope is Scope.PROCESS
    assert judged_together(unknown, device).scope is Scope.DEVICE
    assert judged_together(process, process).scope is Scope.PROCESS
    assert judged_together(process, device).scope is Scope.MIXED
    assert "the second device" in judged_together(process, device).why


def test_the_second_scrape_decides_by_device() -> None:
    """Units that only the second could tell take its word."""
    first = scrape(Exporter().device(util=0).pod("a/x", util=0).pod("a/y", util=0).text())
    second = scrape(mapped().text())
    together = judged_together(first.judgement, second.judgement)
    assert [unit.scope for unit in together.units] == [Scope.PROCESS]
    assert judged_together(scrape(duplicated().text()).judgement, second.judgement).scope is Scope.MIXED
