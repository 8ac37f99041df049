"""Whose figures, and what is counted twice."""

from __future__ import annotations

from exporter_texts import UTIL, UUID, Exporter, arbitrary, duplicated, mapped, row
from gpuledger.audit.exporter import audit_exporter
from gpuledger.model.findings import Finding, Level, Written


def struck(text: str) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in audit_exporter(Written(path="scrape", text=text)).findings:
        found.setdefault(finding.check.id.removeprefix("exporter/"), []).append(finding)
    return found


def test_three_pods_with_the_same_figure_are_an_error() -> None:
    """The device's figure three times, with the figures as evidence and the line where they begin."""
    (finding,) = struck(duplicated().text())["device-scope"]
    assert (finding.check.level, finding.where.name, finding.where.line) == (Level.ERROR, UUID, 3)
    assert finding.evidence[0].startswith("DCGM_FI_DEV_GPU_UTIL: team-a/one 71, team-b/two 71, team-c/three 71")


def test_one_pod_on_the_devices_row_is_a_warning() -> None:
    """It is right while nobody shares the device."""
    found = struck(arbitrary().text())
    assert [finding.check.level for finding in found["device-row-on-pod"]] == [Level.WARNING]
    assert "profiling-on-one-pod" in found
    assert "device-figures-on-pods" not in found


def test_profiling_on_pods_is_wrong_in_process_scope_too() -> None:
    """No release splits it."""
    (finding,) = struck(mapped().text())["profiling-on-pods"]
    assert finding.evidence == ("DCGM_FI_PROF_GR_ENGINE_ACTIVE: team-a/train 0.8, team-b/serve 0.8",)


def test_profiling_of_an_instance_with_one_pod_is_the_pods() -> None:
    """The hardware counts by instance."""
    assert "profiling-on-one-pod" not in struck(Exporter().instance(1, pod="a/x", engine=0.5, used=100).text())
    shared = Exporter().instance(1, pod="a/x", engine=0.5).instance(1, pod="a/y", engine=0.5)
    assert "of the instance" in struck(shared.text())["profiling-on-pods"][0].message


def test_a_pod_with_several_rows() -> None:
    """Each replica slot and each container repeats the pod's total (#725)."""
    exporter = Exporter().device(util=90).pod("a/y", util=20)
    for slot in ("0", "1"):
        exporter.pod("a/x", util=70, labels={"vgpu": slot})
    (finding,) = struck(exporter.text())["repeated-replica-rows"]
    assert "a/x has 2 rows of DCGM_FI_DEV_GPU_UTIL on one device: 70, 70" in finding.message
    assert finding.evidence == ("vgpu 0, container main", "vgpu 1, container main")


def test_the_same_series_twice() -> None:
    """Two scrapes in one text, or replicas without a vgpu label: the description of metrics tells which."""
    line = row(UTIL, 5, gpu="0", UUID=UUID, pod="x", namespace="a")
    assert "for each replica" in struck(f"{line}\n{line}\n")["repeated-series"][0].message
    text = mapped().text()
    assert "holds that many scrapes" in struck(text + text)["repeated-series"][0].message


def test_pods_that_exceed_their_device() -> None:
    """Memory never may; utilisation within ten points, for it is sampled; copies are told otherwise."""
    over = Exporter().device(util=80, used=1000).pod("a/x", util=60, used=900).pod("a/y", util=29, used=200)
    (finding,) = struck(over.text())["pods-above-device"]
    assert finding.message.startswith("pods of one device add up to 1100 MiB")
    copies = Exporter().device(util=80).pod("a/x", util=80).pod("a/y", util=80)
    assert "pods-above-device" not in struck(copies.text())


def test_power_and_energy_on_instances() -> None:
    """One device's figure on each of its instances; one instance alone repeats nothing."""
    many = Exporter().instance(1, power=112, energy=6890).instance(2, power=106, energy=6890)
    (finding,) = struck(many.text())["device-figure-on-instances"]
    assert "6890, 6890; their sum is 13780" in finding.evidence[0]
    assert "device-figure-on-instances" not in struck(Exporter().instance(1, power=112).text())


def test_jobs_that_share_a_device() -> None:
    """The mapping file names jobs; each gets the device's whole figure."""
    lines = [row(UTIL, 64, gpu="0", UUID=UUID, Hostname="n", hpc_job=job) for job in ("101", "102")]
    (finding,) = struck("\n".join(lines) + "\n")["device-figures-on-jobs"]
    assert finding.evidence == ("DCGM_FI_DEV_GPU_UTIL: job 101 64, job 102 64",)
    assert "device-figures-on-jobs" not in struck(lines[0] + "\n")


def test_a_device_of_two_exporters() -> None:
    """The operator's and somebody's own on one node: each row stands twice, and a sum doubles it."""
    both = Exporter(host="node-1").device(util=60).text() + Exporter(host="dcgm-exporter-x7k").device(util=61).text()
    (finding,) = struck(both)["two-exporters"]
    assert finding.message == f"2 exporters tell {UTIL}: dcgm-exporter-x7k, node-1"
    assert finding.evidence == ("dcgm-exporter-x7k: 61", "node-1: 60")
    assert "two-exporters" not in struck(mapped().text())
    other = Exporter(host="a").device(util=60).text() + Exporter(host="b").device(uuid="GPU-other", util=61).text()
    assert "two-exporters" not in struck(other)
