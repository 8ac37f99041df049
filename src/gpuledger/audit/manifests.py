"""``audit manifests``: exporters of GPU figures against what per-process attribution needs, and who will reject them.

Text in, findings out. Every setting is on, off, or not to be told from the text; only the second is a fault, and the
third is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpuledger.audit import manifest_checks as checks
from gpuledger.audit.documents import NOTHING, Document, Node, documents
from gpuledger.audit.exception_drafts import ENFORCE, OWNER, UNTIL, DraftKind, Exempted, draft
from gpuledger.audit.exporter_scrape import listed
from gpuledger.audit.kustomize import built
from gpuledger.audit.manifest_access import Reading, access_to_pods
from gpuledger.audit.manifest_constraints import forbidden
from gpuledger.audit.manifest_monitors import renamed_labels
from gpuledger.audit.manifest_settings import (
    COLLECTORS,
    DRA,
    FAKE_GPUS,
    KUBERNETES,
    OLD_NAMES,
    POD_UID,
    RESOURCE_NAMES,
    SOCKET,
    VIRTUAL_GPUS,
    Setting,
    settings_of,
)
from gpuledger.audit.manifest_workloads import UNJUDGED, Exporter, Other, exporters
from gpuledger.audit.manifest_world import World, worlds_of
from gpuledger.audit.pod_security import Breach, PodLevel, breaches, level_of, rejects
from gpuledger.audit.versions import MAPS_PROCESSES, chart_version, exporter_version
from gpuledger.errors import Misconfigured
from gpuledger.model.findings import AuditCheck, AuditReport, Finding, Level, Looked, Where, Written
from gpuledger.model.moments import parse_moment
from gpuledger.model.problem import Problem

CHECKS = checks.CHECKS

_FINE = "fine"
_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedDraft:
    """An exception that is asked for.

    Args:
        kind: what it is written for.
        owner: who answers for it.
        until_us: when it ends, microseconds UTC; None where nobody has said.
        namespace: where exporters run that do not say it themselves; may be empty.
    """

    kind: DraftKind
    owner: str
    until_us: int | None
    namespace: str = ""


def audit_manifests(texts: Sequence[Written], *, now_us: int, wanted: WantedDraft | None = None) -> AuditReport:
    """Judge every exporter of the texts; they are read together, as roles, namespaces and configs belong to them.

    Args:
        texts: manifests, templates, chart values.
        now_us: what the end of an exception is compared with, microseconds UTC.
        wanted: the draft of an exception, if one is asked for.

    Raises:
        Refused: a draft without owner or end.
        Misconfigured: a draft for no namespace, or for nothing.
    """
    read: list[Document] = []
    unread: list[Problem] = []
    for written in texts:
        found, wrong = documents(written)
        read += found
        unread += wrong
    made = built(read)
    unread += made.unread
    looked: list[Looked] = []
    findings: list[Finding] = []
    exempted: list[Exempted] = []
    worlds = worlds_of(made.documents, now_us)
    for document in made.documents:
        parts, wrong = exporters(document)
        unread += wrong
        for part in parts:
            if isinstance(part, Other) and part.verdict in UNJUDGED:
                continue  # among those that were not read
            if isinstance(part, Other):
                where = Where(path=document.path, line=part.line, name=part.name)
                looked.append(Looked(where=where, verdict=part.verdict, why=part.why))
                continue
            judged = _Judgement(part, worlds[document.built_by])
            findings += judged.findings
            looked.append(judged.looked())
            kind = part.form if not part.from_values else "DaemonSet"
            own = part.container.at("name").text  # the operator gives its DaemonSet the name of the container
            name = part.name if not part.from_values else own if own == "nvidia-dcgm-exporter" else ""
            exempted.append(Exempted(kind=kind, name=name, namespace=part.namespace, breaches=judged.breaches))
        findings += list(renamed_labels(document))
    steps = dict.fromkeys(finding.advice for finding in findings if finding.check.level is not Level.NOTE)
    return AuditReport(
        audit="manifests",
        looked=(*looked, *made.looked),
        findings=tuple(findings),
        unread=tuple(unread),
        facts=_facts(exempted, made.elsewhere),
        checklist=tuple(steps),
        draft="" if wanted is None else _drafted(exempted, wanted, now_us),
        checks=CHECKS,
    )


def _drafted(exempted: list[Exempted], wanted: WantedDraft, now_us: int) -> str:
    return draft(
        exempted, kind=wanted.kind, owner=wanted.owner, until_us=wanted.until_us, now_us=now_us,
        namespace=wanted.namespace,
    )  # fmt: skip


def _facts(exempted: list[Exempted], elsewhere: Sequence[str]) -> tuple[tuple[str, str], ...]:
    more = (("kustomize resources that are not here", listed(elsewhere)),) if elsewhere else ()
    if not exempted:
        return (("exporters", "none: no manifest here exports DCGM's figures"), *more)
    levels = dict.fromkeys(level_of(each.breaches).value for each in exempted)
    return (
        ("Pod Security level that admits them", ", ".join(levels)),
        (
            "per pod at best",
            "DCGM_FI_DEV_GPU_UTIL and DCGM_FI_DEV_FB_USED; every other figure on a pod stays the device's",
        ),
        *more,
    )


class _Judgement:
    """One exporter judged by every rule.

    Args:
        exporter: the exporter.
        world: what all texts say.
    """

    def __init__(self, exporter: Exporter, world: World) -> None:
        self._exporter = exporter
        self._world = world
        self._settings = settings_of(exporter.container, exporter.document, world.config_maps(exporter.namespace))
        self._undecided: list[str] = []
        self.breaches = _needed(exporter.pod)
        self.findings: list[Finding] = []
        self._switches()
        self._host_pid()
        self._access()
        self._pod_resources()
        self._resource_names()
        self._version()
        self._profiling()
        self._pod_security()
        if self._undecided:
            self._strike(
                checks.UNDECIDABLE, exporter.line, "what these are cannot be told from the text", *self._undecided
            )

    def looked(self) -> Looked:
        """The exporter with what it came to."""
        where = Where(path=self._exporter.document.path, line=self._exporter.line, name=self._exporter.title)
        heaviest = sorted(self.findings, key=lambda finding: list(Level).index(finding.check.level))
        counts = [finding for finding in heaviest if finding.check.level is not Level.NOTE]
        if not counts:
            return Looked(where=where, verdict=_FINE, why="all that per-process attribution needs is there")
        why = ", ".join(dict.fromkeys(finding.check.verdict for finding in counts))
        return Looked(where=where, verdict=counts[0].check.verdict, why=why)

    def _strike(self, check: AuditCheck, line: int, message: str, *evidence: str, fix: str = "") -> None:
        where = Where(path=self._exporter.document.path, line=line or self._exporter.line, name=self._exporter.title)
        self.findings.append(
            Finding(
                check=check, where=where, message=f"{message[:1].upper()}{message[1:]}.", evidence=evidence, fix=fix
            )
        )

    def _unset(self, setting: Setting) -> str:
        if setting.text:
            return f"{setting.name} is {setting.text} ({setting.why})"
        return f"{setting.name} is not set" + (", and the chart leaves it out" if self._exporter.from_values else "")

    def _switches(self) -> None:
        for name, check, message in (
            (KUBERNETES, checks.KUBERNETES_OFF, "no figure carries a pod at all"),
            (VIRTUAL_GPUS, checks.ONE_POD_PER_GPU, "of the pods that share a device, one gets all of its figures"),
            (POD_UID, checks.NO_POD_UID, "processes are matched to pods by UID, and the kubelet's list has none"),
        ):
            setting = self._settings[name]
            if setting.is_off:
                self._strike(check, setting.line, message, self._unset(setting))
            elif not setting.known:
                self._undecided.append(f"{name}: {setting.why}")
        for name, check, message in (
            (OLD_NAMES, checks.OLD_NAMES, "it writes the names of 1.x: pod_name, pod_namespace, dcgm_*"),
            (FAKE_GPUS, checks.FAKE_GPUS, "its figures are of devices that do not exist"),
        ):
            setting = self._settings[name]
            if setting.is_on:
                self._strike(check, setting.line, message, f"{setting.name} is {setting.text} ({setting.why})")
        if self._world.claims:
            setting = self._settings[DRA]
            if setting.is_off:
                message = "pods of these texts hold devices by resource claims, which it does not map"
                self._strike(checks.DRA_OFF, setting.line, message, self._unset(setting), self._world.claims)
            elif not setting.known:
                self._undecided.append(f"{DRA}: {setting.why}")

    def _told(self, key: str, node: Node) -> bool:
        """Whether a value of the pod is told; else it is undecided."""
        document = self._exporter.document
        if node.opaque or (node.is_there and node.line in document.conditional):
            self._undecided.append(f"{key}: {document.shown(node.text) or 'a template'}")
            return False
        return True

    def _host_pid(self) -> None:
        node = self._exporter.pod.at("hostPID")
        if self._told("hostPID", node) and node.truth is not True:
            said = f"hostPID is {node.text or 'not set'}"
            message = "it sees no process of any pod, so every pod reads 0, which looks like idleness"
            self._strike(checks.NO_HOST_PID, node.line, message, said)

    def _access(self) -> None:
        exporter, pod = self._exporter, self._exporter.pod
        account = pod.at("serviceAccountName").text or pod.at("serviceAccount").text
        token = pod.at("automountServiceAccountToken")
        inherited = self._world.account(account, exporter.namespace).at("automountServiceAccountToken")
        if self._told("automountServiceAccountToken", token):
            effective = token if token.is_there else inherited
            if effective.truth is False:
                why = (
                    "the chart mounts a token only with enablePodUID or enablePodLabels (and rbac.create)"
                    if exporter.from_values
                    else "automountServiceAccountToken is false"
                )
                message = "it cannot ask the API for the UIDs of pods, and then every pod reads 0"
                fix = "Set enablePodUID: true, and leave rbac.create on." if exporter.from_values else ""
                line = 0 if exporter.from_values else effective.line
                self._strike(checks.NO_TOKEN, line, message, why, fix=fix)
                return
        if exporter.access or (exporter.from_values and token.truth is False):
            return
        if pod.at("serviceAccountName").opaque:
            self._undecided.append(f"the account: {exporter.document.shown(account)}")
            return
        access = access_to_pods(self._world.read, account, exporter.namespace)
        if access.reading is Reading.DENIED:
            self._strike(checks.NO_ACCESS, 0, "its account may not read the pods of all namespaces", access.why)
        elif access.reading is Reading.UNSEEN:
            message = "whether its account may read pods is not shown; without it every pod reads 0"
            self._strike(checks.ACCESS_UNSEEN, 0, message, access.why)

    def _pod_resources(self) -> None:
        socket = self._settings[SOCKET]
        looked_for = (socket.text if socket.known else "") or _SOCKET
        pod = self._exporter.pod
        hosts = {volume.at("name").text: volume.at("hostPath", "path") for volume in pod.at("volumes").entries}
        for mount in self._exporter.container.at("volumeMounts").entries:
            host = hosts.get(mount.at("name").text, NOTHING)
            inside = mount.at("mountPath").text.rstrip("/")
            if not host.is_there or not (looked_for == inside or looked_for.startswith(f"{inside}/")):
                continue
            if host.opaque or host.line in self._exporter.document.conditional:
                self._undecided.append(f"the host's pod-resources: {self._exporter.document.shown(host.text)}")
                return
            if (host.text.rstrip("/") + looked_for[len(inside) :]).endswith("pod-resources/kubelet.sock"):
                return
        opaque = pod.at("volumes").opaque or self._exporter.container.at("volumeMounts").opaque
        if opaque:
            self._undecided.append("the mount of pod-resources: a template")
            return
        message = f"nothing of the host is mounted at {looked_for}, so it cannot ask who holds a device"
        self._strike(checks.NO_POD_RESOURCES, self._exporter.container.line, message)

    def _resource_names(self) -> None:
        setting = self._settings[RESOURCE_NAMES]
        if not setting.known:
            self._undecided.append(f"{RESOURCE_NAMES}: {setting.why}")
            return
        listed = {name.strip() for name in setting.text.split(",")}
        lacking = {name: where for name, where in self._world.renamed.items() if name not in listed}
        if lacking:
            message = f"pods that hold {', '.join(sorted(lacking))} get no label: the name is not listed"
            evidence = [self._unset(setting), *(f"{name}: {where}" for name, where in sorted(lacking.items()))]
            self._strike(checks.RESOURCE_NAMES, setting.line, message, *evidence)
        elif not setting.text and not self._world.renamed:
            message = "it knows nvidia.com/gpu and MIG only; no device plugin config here tells whether that is all"
            self._strike(checks.RESOURCE_NAMES_UNSET, setting.line, message)

    def _version(self) -> None:
        image = self._exporter.container.at("image")
        shown = self._exporter.document.shown(image.text)
        version = exporter_version(image.text)
        if ":" not in image.text.rpartition("/")[2]:  # the chart's own
            version = chart_version(*self._exporter.chart)
            shown = " ".join(("chart", *self._exporter.chart)) if version else shown
        if version is None:
            self._strike(
                checks.VERSION_UNKNOWN, image.line, f"the image {shown or '(not set)'} does not tell its version"
            )
        elif version < MAPS_PROCESSES:
            on = [name for name in (VIRTUAL_GPUS, POD_UID) if self._settings[name].is_on]
            heeded = f", whatever {' and '.join(on)} say" if on else ""
            message = f"this version gives each pod the whole device's figures{heeded}"
            self._strike(checks.TOO_OLD, image.line, message, shown)

    def _profiling(self) -> None:
        context = self._exporter.container.at("securityContext")
        collectors = self._settings[COLLECTORS]
        added = [entry.text.removeprefix("CAP_") for entry in context.at("capabilities", "add").entries]
        if (
            "dcp-metrics" not in collectors.text
            or context.opaque
            or context.at("privileged").truth
            or "SYS_ADMIN" in added
        ):
            return
        message = "it collects DCGM_FI_PROF_* without the right to, so these figures are missing"
        self._strike(checks.NO_PROFILING, context.line or collectors.line, message, f"collectors: {collectors.text}")

    def _pod_security(self) -> None:
        exporter = self._exporter
        said = dict.fromkeys(f"{each.level.value} rejects {each.what} ({each.control})" for each in self.breaches)
        document, namespace = self._world.namespaces.get(exporter.namespace, (None, NOTHING))
        enforced = namespace.at("metadata", "labels", ENFORCE).text
        if refused := rejects(enforced, self.breaches):
            message = f"namespace {exporter.namespace} enforces {enforced}, so its pods are never made"
            what = [f"{breach.what} ({breach.control})" for breach in refused]
            self._strike(checks.REJECTED, refused[0].line, message, *what)
        elif self.breaches and enforced != "privileged":
            message = f"a namespace that enforces {self.breaches[0].level.value} rejects it"
            self._strike(checks.NEEDS_PRIVILEGED, self.breaches[0].line, message, *said)
        if document is not None and enforced == "privileged":
            self._exception(document, namespace)
        account = exporter.pod.at("serviceAccountName").text or exporter.pod.at("serviceAccount").text
        world = self._world
        found = forbidden(world.constraints, exporter.pod, account, exporter.namespace, world.read)
        if found and found.doubt:
            self._undecided.append(f"OpenShift's constraint of its pods: {found.doubt}")
        elif found:
            message = f"OpenShift does not make its pods: the constraint {found.name} forbids what they need"
            self._strike(checks.CONSTRAINED, 0, message, *found.refused)

    def _exception(self, document: Document, namespace: Node) -> None:
        name = namespace.at("metadata", "name").text
        annotations = namespace.at("metadata", "annotations")
        owner, until = annotations.at(OWNER).text.strip(), annotations.at(UNTIL).text.strip()
        where = Where(path=document.path, line=namespace.line, name=f"Namespace {name}")
        ends_us = _moment(until)
        if not owner or ends_us is None:
            lacking = "an owner" if not owner else "an end" if not until else f"an end that is a date, not {until!r}"
            message = f"It admits privileged pods, and the exception lacks {lacking}."
            self.findings.append(Finding(check=checks.EXCEPTION_UNSIGNED, where=where, message=message))
        elif ends_us <= self._world.now_us:
            message = f"Its exception, signed by {owner}, ended at {until}."
            self.findings.append(Finding(check=checks.EXCEPTION_OVER, where=where, message=message))


def _needed(pod: Node) -> tuple[Breach, ...]:
    """What the levels reject of the pod, with the host's processes that it needs, set or not."""
    found = breaches(pod)
    if pod.at("hostPID").truth:
        return found
    needs = Breach(level=PodLevel.BASELINE, control="Host Namespaces", what="hostPID: true, which it needs")
    return (needs, *found)


def _moment(text: str) -> int | None:
    if not re.match(r"\d{4}-\d\d-\d\d", text):
        return None
    try:
        return parse_moment(text, now_us=0)
    except Misconfigured:
        return None
