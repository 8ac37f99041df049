"""Samples by device, instance, metric and pod."""

from __future__ import annotations

from decimal import Decimal

from exporter_texts import OTHER_UUID, UTIL, UUID, Exporter, mapped, row
from gpuledger.audit.exporter_rows import NOBODY, Pod, Rows, lay_out
from gpuledger.audit.exposition import read_exposition


def rows(text: str) -> Rows:
    return lay_out(read_exposition(text))


def test_a_device_with_its_pods() -> None:
    """The device's own row apart from those of pods; figures exact."""
    laid = rows(mapped().text())
    (unit,) = laid.units
    assert (unit.name, unit.instance, laid.devices, laid.pod_label) == (UUID, "", 1, "pod")
    assert unit.pods == (Pod("team-a", "train"), Pod("team-b", "serve"))
    assert unit.values(UTIL, Pod("team-a", "train")) == {Decimal(71)}
    assert unit.values(UTIL, NOBODY) == {Decimal(83)}
    assert laid.samples == laid.series == 12
    assert list(laid.labels) == [
        "gpu", "UUID", "device", "modelName", "Hostname", "container", "namespace", "pod", "pod_uid", "vgpu",
    ]  # fmt: skip


def test_instances_of_one_device() -> None:
    """Each a unit of its own; one device."""
    laid = rows(Exporter().instance(7, used=6).instance(5, profile="2g.10gb", used=13).text())
    assert (laid.devices, laid.instances) == (1, 2)
    assert [unit.name for unit in laid.units] == [f"{UUID} instance 5 (2g.10gb)", f"{UUID} instance 7 (1g.5gb)"]


def test_devices_without_a_uuid_are_told_apart_by_host_and_index() -> None:
    """Masked or elided: two hosts' GPU 0 are two devices; rows about no GPU are none."""
    masked = "GPU-00000000-0000-0000-0000-000000000000"
    text = Exporter(host="a").device(uuid=masked, util=1).text() + Exporter(host="b").device(uuid=masked, util=2).text()
    laid = rows(text + row("DCGM_FI_DEV_CPU_UTIL_TOTAL", 3, cpu="0", Hostname="a") + "\n")
    assert laid.devices == 2
    assert [unit.name for unit in laid.units] == ["no GPU of a", "GPU 0 of a", "GPU 0 of b"]


def test_three_spellings_of_a_pod() -> None:
    """exported_pod wins over pod, which is the exporter then; the old names are read too."""
    behind = row(
        UTIL, 5, gpu="0", UUID=UUID, instance="i", exported_pod="train", exported_namespace="a", pod="dcgm-exporter-1"
    )
    alone = row(UTIL, 5, gpu="0", UUID=OTHER_UUID, instance="i", pod="dcgm-exporter-1", namespace="monitoring")
    laid = rows(f"{behind}\n{alone}\n")
    assert (laid.pods, laid.exporter_pods, laid.queried) == ((Pod("a", "train"),), ("dcgm-exporter-1",), True)
    only = rows(alone + "\n")
    assert (only.pods, only.pod_label, only.exporter_pods) == ((), "", ("dcgm-exporter-1",))
    old = rows(row(UTIL, 5, gpu="0", uuid=UUID, pod_name="train", pod_namespace="a") + "\n")
    assert (old.pods, old.pod_label, old.units[0].uuid) == ((Pod("a", "train"),), "pod_name", UUID)


def test_empty_labels_are_absent_labels() -> None:
    """Releases before 4.x write pod="" where nobody holds a device."""
    laid = rows(row(UTIL, 0, gpu="0", UUID=UUID, container="", namespace="", pod="") + "\n")
    assert (laid.pods, laid.pod_label) == ((), "pod")


def test_a_series_that_stands_twice() -> None:
    """The same labels in any order are one series."""
    first, second = row(UTIL, 5, gpu="0", UUID=UUID), row(UTIL, 6, UUID=UUID, gpu="0")
    laid = rows(f"{first}\n{second}\n{first}\n")
    assert (laid.samples, laid.series, [times for _, times in laid.repeated]) == (3, 1, [3])
    assert laid.units[0].values(UTIL, NOBODY) == {Decimal(5), Decimal(6)}


def test_blanks_and_nan_are_no_figures() -> None:
    """They stand on rows, and give no value."""
    laid = rows("".join(f"{row(UTIL, value, gpu='0', UUID=UUID)}\n" for value in ("2147483634", "NaN", "4")))
    assert laid.units[0].values(UTIL, NOBODY) == {Decimal(4)}


def test_what_is_not_of_dcgm_stands_apart() -> None:
    """The exporter's own metrics, Go's, other exporters'."""
    laid = rows('go_goroutines 7\ndcgm_exporter_build_info{version="4.6.0-4.8.3"} 1\nnvidia_smi_x{uuid="1"} 2\n')
    assert (laid.samples, len(laid.others), laid.units) == (0, 3, ())


def test_labels_of_many_orders_are_all_there() -> None:
    """Their order is merged of the first few; none is lost, and none costs the number of orders squared."""
    text = "".join(f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",label_{number:04}="x"}} 1\n' for number in range(1200))
    labels = rows(text).labels
    assert labels[0] == "gpu"
    assert len(labels) == 1201
