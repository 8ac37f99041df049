"""Pods that are no users, devices without one, spellings, and blanks."""

from __future__ import annotations

from exporter_texts import ENGINE, OTHER_UUID, UTIL, UUID, Exporter, mapped, row
from gpuledger.audit.exporter import audit_exporter
from gpuledger.model.findings import Finding, Written


def struck(text: str) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in audit_exporter(Written(path="scrape", text=text)).findings:
        found.setdefault(finding.check.id.removeprefix("exporter/"), []).append(finding)
    return found


def test_blanks_are_told_with_what_they_are() -> None:
    """By metric and kind of blank, with the first line and the number of rows."""
    text = Exporter().device(util=2147483632).pod("a/x", used=17592186044415).pod("a/y", used=17592186044415).text()
    util, used = struck(text)["blank-as-figure"]
    assert util.message == "1 row of DCGM_FI_DEV_GPU_UTIL says 2147483632: DCGM's int32 blank"
    assert "2 rows of DCGM_FI_DEV_FB_USED say 17592186044415" in used.message
    assert used.where.line > util.where.line


def test_every_pod_at_zero_on_a_busy_device() -> None:
    """Idle pods do not keep a device busy: its processes are not mapped."""
    text = Exporter().device(util=90, used=9000).pod("a/x", util=0, used=0).pod("a/y", util=0, used=0).text()
    (finding,) = struck(text)["pods-without-figures"]
    assert "the device reads 90 % and 9000 MiB" in finding.message
    report = audit_exporter(Written(path="x", text=text))
    assert any("hostPID: true" in step for step in report.checklist)


def test_one_pod_at_zero_is_a_note() -> None:
    """Idle, or not mapped: nobody can tell, so it is no ground for a bill."""
    text = Exporter().device(util=90).pod("a/x", util=90).pod("a/y", util=0).text()
    assert "a/y read 0 beside 1 pod with figures" in struck(text)["pod-at-zero"][0].message
    idle = Exporter().device(util=0, used=4).pod("a/x", util=0, used=0).text()
    assert not {"pod-at-zero", "pods-without-figures"} & struck(idle).keys()


def test_work_on_none_of_the_pods() -> None:
    """MPS: the clients hold memory, and their server works; their zeros are no idleness."""
    text = Exporter().device(util=87, used=20000).pod("a/x", util=0, used=8000).pod("a/y", util=0, used=7000).text()
    (finding,) = struck(text)["work-not-on-pods"]
    assert finding.message == "2 pods with 15000 MiB read 0 % while the device reads 87 %: the work is on none of them"
    assert finding.evidence == ("a/x: 0 %, 8000 MiB", "a/y: 0 %, 7000 MiB")
    assert "pods-without-figures" not in struck(text)


def test_pods_without_a_row_read_no_zero() -> None:
    """One without a utilisation is not counted among them, and memory that no row tells is not 0."""
    text = Exporter().device(util=87, used=20000).pod("a/x", util=0, used=8000).pod("a/y", used=7000)
    (finding,) = struck(text.text())["work-not-on-pods"]
    assert finding.message.startswith("1 pod with 8000 MiB read 0 % while the device reads 87 %")
    assert finding.evidence == ("a/x: 0 %, 8000 MiB", "a/y: utilisation not told")
    (finding,) = struck(text.pod("a/z", util=0).text())["work-not-on-pods"]
    assert finding.message.startswith("2 pods with at least 8000 MiB read 0 % while the device reads 87 %")
    assert finding.evidence == ("a/x: 0 %, 8000 MiB", "a/z: 0 %, memory not told", "a/y: utilisation not told")


def test_work_on_the_server_of_mps() -> None:
    """Its pod is on the rows, and has what its clients did."""
    server = Exporter().pod("a/x", util=0, used=8000).pod("nvidia/mps-control-daemon-k", util=87, used=400)
    message = struck(server.device(util=87, used=20000).text())["work-not-on-pods"][0].message
    assert "nvidia/mps-control-daemon-k, the MPS server, reads 87 %" in message


def test_where_work_is_on_a_pod() -> None:
    """One that works is enough; a device at rest, and pods that hold nothing, are other cases."""
    base = Exporter().device(util=87, used=20000).pod("a/x", util=0, used=8000)
    assert "work-not-on-pods" not in struck(base.pod("a/y", util=80, used=7000).text())
    rest = Exporter().device(util=9, used=20000).pod("a/x", util=0, used=8000)
    assert "work-not-on-pods" not in struck(rest.text())
    nothing = Exporter().device(util=87, used=20000).pod("a/x", util=0, used=0)
    assert "work-not-on-pods" not in struck(nothing.text())
    silent = Exporter().device(util=87, used=20000).pod("a/x", used=8000)
    assert "work-not-on-pods" not in struck(silent.text())


def test_a_zero_under_work() -> None:
    """DCGM has no utilisation of MIG instances and says 0; the engine of the same instance tells otherwise."""
    busy = Exporter().instance(7, pod="a/x", util=0, used=9000, engine=0.93).text()
    (finding,) = struck(busy)["zero-under-work"]
    assert finding.message == f"{UTIL} is 0, and {ENGINE} of the same instance is 0.93"
    for quiet in (busy.replace("0.93", "0.04"), Exporter().instance(7, pod="a/x", util=3, engine=0.93).text()):
        assert "zero-under-work" not in struck(quiet)
    assert "zero-under-work" not in struck(Exporter().instance(7, pod="a/x", engine=0.93).text())
    whole = Exporter().device(util=0, engine=0.6)
    assert "zero-under-work" in struck(whole.text())
    assert "zero-under-work" not in struck(whole.text().replace("0.6", "0.3"))


def test_reservation_pods_are_not_the_user() -> None:
    """Of Run:ai and KAI, by namespace or name."""
    text = Exporter().pod("kai-resource-reservation/gpu-reservation-x", used=128).text()
    assert "128 MiB in use" in struck(text)["reservation-pod"][0].message


def test_a_busy_device_without_a_pod() -> None:
    """Beside others that have one; the memory that a driver takes is not busy."""
    text = mapped().device(gpu=1, uuid=OTHER_UUID, util=55, used=20_000).device(gpu=2, uuid="GPU-2", util=0, used=450)
    (finding,) = struck(text.text())["busy-without-pod"]
    assert (finding.where.name, finding.message) == (
        OTHER_UUID,
        "55 % busy, 20000 MiB in use, and no pod is named on any row",
    )


def test_no_label_for_pods_at_all() -> None:
    """The exporter does not ask the kubelet."""
    text = Exporter().device(util=55).text()
    assert list(struck(text)) == ["cannot-tell", "no-pod-labels"]
    report = audit_exporter(Written(path="x", text=text))
    assert report.checklist[0].startswith("Set DCGM_EXPORTER_KUBERNETES=true")


def test_pod_is_the_exporter_itself() -> None:
    """Without honorLabels: beside exported_pod, and where nobody holds a device."""
    holder = {"exported_pod": "train", "exported_namespace": "a"}
    base = {"gpu": "0", "UUID": UUID, "instance": "10.0.0.1:9400", "pod": "nvidia-dcgm-exporter-x"}
    both = struck(row(UTIL, 5, **base, **holder) + "\n")["exported-labels"][0].message
    assert (
        both == "the pods that hold devices are in exported_pod (a/train); pod is nvidia-dcgm-exporter-x, the exporter"
    )
    alone = struck(row(UTIL, 5, **base) + "\n")
    assert "the exporter itself" in alone["exported-labels"][0].message
    assert "no-pod-labels" not in alone


def test_old_names() -> None:
    """Of metrics, of labels, of both."""
    labels = {"gpu": "0", "uuid": UUID, "pod_name": "x", "pod_namespace": "a", "container_name": "c"}
    message = struck(row("dcgm_gpu_utilization", 5, **labels) + "\n")["old-names"][0].message
    assert message.startswith("metrics dcgm_gpu_utilization and labels container_name, pod_name, pod_namespace, uuid")


def test_both_spellings_of_the_host() -> None:
    """A cluster in the middle of an update."""
    text = Exporter().device(util=1).text() + Exporter(spelled="hostname").device(uuid=OTHER_UUID, util=1).text()
    assert "both-host-labels" in struck(text)
    assert "both-host-labels" not in struck(mapped().text())


def test_an_empty_uid() -> None:
    """The exporter may not read pods, so that nothing can be mapped."""
    text = Exporter().device(util=1).pod("a/x", util=1, labels={"pod_uid": ""}).text()
    assert "pod_uid is empty for a/x" in struck(text)["empty-pod-uid"][0].message
