"""One report of an audit, with something of everything."""

from __future__ import annotations

from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Looked, Waiver, Where
from gpuledger.model.moments import parse_moment
from gpuledger.model.problem import Problem

WRONG = AuditCheck(
    id="dashboards/misattribution",
    verdict="misattribution",
    rule="A device's figure is not shown as a pod's.",
    fix="Show it by device.",
    level=Level.ERROR,
)
STAMPED = AuditCheck(
    id="dashboards/device-scope",
    verdict="device-scope",
    rule="Figures stamped on pods need an exporter that maps processes.",
    fix="Ask gpuledger audit exporter.",
    level=Level.WARNING,
)
CLEAN = AuditCheck(id="dashboards/laundered", verdict="laundered", rule="R.", fix="F.", level=Level.ERROR)
WAIVER = Waiver(
    check="dashboards/*", where="*", reason="one pod a GPU", owner="ana",
    expires_us=parse_moment("2027-01-31", now_us=0), origin=Where(path="waivers.yaml", line=3),
)  # fmt: skip
REPORT = AuditReport(
    audit="dashboards",
    looked=(
        Looked(where=Where(path="a.json", line=7, name="Tensor / A"), verdict="misattribution", text="sum(x) by (pod)"),
        Looked(where=Where(path="a.json", line=9, name="Power / A"), verdict="fine"),
    ),
    findings=(
        Finding(
            check=STAMPED, where=Where(path="my boards/b,1.json", line=2), message="A figure of the device.\nReally.",
        ),
        Finding(
            check=WRONG, where=Where(path="./a.json", line=7, name="Tensor / A"), message="100% of \x1b[2Jthe device.",
            evidence=("sum(x) by (pod)",), fix="by (UUID)",
        ),
        Finding(check=WRONG, where=Where(path="/srv/c.json"), message="Waived.", waiver=WAIVER),
    ),
    unread=(Problem(code="not-yaml", message="not YAML: no", where="d.yaml:4"),),
    notes=(Problem(code="waiver-expired", message="it ended", where="waivers.yaml:9"),),
    facts=(("process scope", "cannot tell"),),
    checklist=("Set hostPID: true.", "Update the exporter."),
    draft="kind: Namespace\nmetadata: {}\n",
    checks=(WRONG, STAMPED, CLEAN),
)  # fmt: skip
