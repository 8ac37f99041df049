"""Process scope, device scope, or cannot tell: by figures, then by the shape of the rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from exporter_texts import OTHER_UUID, UTIL, UUID, Exporter, arbitrary, duplicated, mapped, row
from gpuledger.audit.exporter_rows import lay_out
from gpuledger.audit.exporter_scope import Judgement, Scope, judge, plain, shown_figures
from gpuledger.audit.exposition import read_exposition

FB = "DCGM_FI_DEV_FB_USED"


def judged(text: str) -> Judgement:
    exposition = read_exposition(text)
    return judge(lay_out(exposition), exposition.holders)


def told(exporter: Exporter) -> tuple[str, bool]:
    judgement = judged(exporter.text())
    return judgement.scope.value, any(unit.by_values for unit in judgement.units)


CASES = [
    ("own figures, the device beside them", mapped(), ("process", True)),
    ("the same on three pods, no row of the device", duplicated(), ("device", True)),
    ("one pod on the only row", arbitrary(), ("device", False)),
    (
        "the same on two pods, and the device has it too",
        Exporter().device(util=71).pod("a/x", util=71).pod("a/y", util=71),
        ("device", True),
    ),
    (
        "two equal pods that are half of the device each",
        Exporter().device(util=80).pod("a/x", util=40).pod("a/y", util=40),
        ("process", True),
    ),
    (
        "one metric equal by chance, the other not",
        Exporter().pod("a/x", util=40, used=500).pod("a/y", util=40, used=900),
        ("process", True),
    ),
    (
        "one idle pod beside a busy one",
        Exporter().device(util=90).pod("a/x", util=90).pod("a/y", util=0),
        ("process", True),
    ),
    (
        "one pod with less than the device",
        Exporter().device(util=90, used=20_500).pod("a/x", util=90, used=20_000),
        ("process", True),
    ),
    (
        "one pod with exactly the device's",
        Exporter().device(util=90, used=20_000).pod("a/x", util=90, used=20_000),
        ("cannot-tell", False),
    ),
    ("all idle", Exporter().device(util=0).pod("a/x", util=0).pod("a/y", util=0), ("cannot-tell", False)),
    ("idle, without a row of the device", Exporter().pod("a/x", util=0).pod("a/y", util=0), ("cannot-tell", False)),
    (
        "pods at 0 on a busy device",
        Exporter().device(util=90, used=9000).pod("a/x", util=0, used=0).pod("a/y", util=0, used=0),
        ("cannot-tell", False),
    ),
    ("nobody on any row", Exporter().device(util=90), ("cannot-tell", False)),
    ("power only", Exporter().pod("a/x", power=200).pod("a/y", power=200), ("cannot-tell", False)),
    ("profiling only", Exporter().pod("a/x", engine=0.7).pod("a/y", engine=0.7), ("device", True)),
    ("profiling only, idle", Exporter().pod("a/x", engine=0).pod("a/y", engine=0), ("cannot-tell", False)),
    ("only blanks on pods", Exporter().pod("a/x", util=2147483632).pod("a/y", util=2147483632), ("cannot-tell", False)),
    (
        "instances with one pod each differ, which proves nothing",
        Exporter().instance(1, pod="a/x", used=500).instance(2, pod="a/y", used=900),
        ("cannot-tell", False),
    ),
    (
        "pods of one time-sliced instance with memory of their own",
        Exporter().instance(1, used=1500).instance(1, pod="a/x", used=500).instance(1, pod="a/y", used=900),
        ("process", True),
    ),
    (
        "the pods of different devices differ, which proves nothing",
        Exporter().pod("a/x", util=5).pod("a/y", gpu=1, uuid=OTHER_UUID, util=9),
        ("device", False),
    ),
]


@pytest.mark.parametrize(("name", "exporter", "expected"), CASES, ids=[name for name, _, _ in CASES])
def test_the_scope_of_a_scrape(name: str, exporter: Exporter, expected: tuple[str, bool]) -> None:
    """Each with whether figures of pods prove it."""
    assert told(exporter) == expected


def test_the_answer_to_a_query_may_lack_the_devices_row() -> None:
    """Then the shape of the rows says nothing: `{pod!=""}` leaves out what would prove it."""
    text = row(UTIL, 64, gpu="0", UUID=UUID, instance="i", exported_pod="x", exported_namespace="a") + "\n"
    assert judged(text).scope is Scope.CANNOT_TELL
    assert "query" in judged(text).why


def test_copies_of_one_model_look_like_the_devices_figure() -> None:
    """Equal memory and no utilisation prove nothing where a query may have left the device's own row out."""
    twins = {"gpu": "0", "UUID": UUID, "exported_namespace": "a"}
    asked = "".join(f"{row(FB, 15000, **twins, instance='i', exported_pod=pod)}\n" for pod in "xy")
    assert judged(asked).scope is Scope.CANNOT_TELL
    assert "copies of one model" in judged(asked).why
    scraped = "".join(f"{row(FB, 15000, **twins, exported_pod=pod)}\n" for pod in "xy")
    assert judged(scraped).scope is Scope.DEVICE
    busy = "".join(f"{row(UTIL, 71, **twins, instance='i', exported_pod=pod)}\n" for pod in "xy")
    assert judged(asked + busy).scope is Scope.DEVICE


def test_several_moments_in_one_text() -> None:
    """Two scrapes of a device-wide exporter: each pod has both figures; overlapping in part decides nothing."""
    both = Exporter().pod("a/x", util=40).pod("a/y", util=40).text() + Exporter().pod("a/x", util=71).text()
    assert judged(both + Exporter().pod("a/y", util=71).text()).scope is Scope.DEVICE
    assert judged(both).scope is Scope.CANNOT_TELL


def test_figures_stand_as_evidence() -> None:
    """The sentence rests on what is there."""
    (unit,) = judged(mapped().text()).units
    assert unit.evidence[0] == "DCGM_FI_DEV_GPU_UTIL: team-a/train 71, team-b/serve 12, the device 83"
    many = Exporter()
    for number in range(9):
        many.pod(f"a/{number}", util=5)
    assert judged(many.text()).units[0].evidence[0].endswith("5 more pods, no row of the device")


def test_figures_as_people_read_them() -> None:
    """Without exponents and empty zeros."""
    assert [plain(Decimal(text)) for text in ("30500", "0.7140", "1E+3", "0.000")] == ["30500", "0.714", "1000", "0"]
    assert shown_figures(frozenset()) == "no figure"


def test_an_empty_label_for_pods_is_a_label() -> None:
    """Behind Prometheus, on a device that nobody holds: the label is there, and names nobody."""
    base = {"gpu": "0", "UUID": UUID, "instance": "10.0.0.1:9400", "pod": "dcgm-exporter-x"}
    assert judged(row(UTIL, 5, **base, exported_pod="") + "\n").why.startswith("no row names a pod")
    assert judged(row(UTIL, 5, **base) + "\n").why.startswith("no row has a label for pods")
