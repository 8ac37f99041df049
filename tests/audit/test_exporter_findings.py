"""All rules over one text: in order, and bounded."""

from __future__ import annotations

from exporter_texts import Exporter, duplicated
from gpuledger.audit.exporter import audit_exporter
from gpuledger.audit.exporter_checks import CHECKS
from gpuledger.audit.exporter_findings import MOST_OF_ONE, owner_of
from gpuledger.model.findings import Written


def test_findings_stand_in_the_order_of_the_rules_and_of_the_text() -> None:
    """The same text always gives the same report."""
    text = duplicated().text()
    report = audit_exporter(Written(path="x", text=text))
    places = [[check.id for check in CHECKS].index(finding.check.id) for finding in report.findings]
    assert places == sorted(places)
    assert report == audit_exporter(Written(path="x", text=text))


def test_a_cluster_of_alike_findings_is_bounded() -> None:
    """Twenty are told, the rest is counted."""
    text = "".join(
        Exporter(host=f"n{node}").pod("runai-reservation/x", uuid=f"GPU-{node:08d}", used=5).text()
        for node in range(1, 101)
    )
    report = audit_exporter(Written(path="x", text=text))
    alike = [finding for finding in report.findings if finding.check.id == "exporter/reservation-pod"]
    assert len(alike) == MOST_OF_ONE + 1
    assert alike[-1].message.startswith("80 more places of this rule")


def test_whose_a_metric_is() -> None:
    """By how its name begins."""
    assert owner_of("nvidia_smi_power_draw_watts") == "nvidia_gpu_exporter"
    assert owner_of("DCGM_FI_DEV_GPU_UTIL") == owner_of("dcgm_gpu_temp") == "dcgm-exporter"
    assert owner_of("gpu_gfx_activity") == "an exporter for AMD"
    assert owner_of("up") == ""
