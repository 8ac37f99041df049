"""The rules of ``audit nodes``: what must agree before a share of a GPU can be billed."""

from __future__ import annotations

from gpuledger.model.findings import AuditCheck, Level

MIXED_REPLICAS = AuditCheck(
    id="nodes/mixed-replicas",
    verdict="mixed-replicas",
    rule="All shared devices of one pool have the same number of replicas, so that a replica is one share of a device.",
    fix="Give the nodes one sharing config, or split the pool by a label.",
    level=Level.ERROR,
)
LABEL_MISMATCH = AuditCheck(
    id="nodes/label-mismatch",
    verdict="label-mismatch",
    rule="What the kubelet offers is devices times replicas, as the labels have them.",
    fix="Give gpu-feature-discovery the device plugin's own config, and restart both.",
    level=Level.ERROR,
)
DEVICES_MISSING = AuditCheck(
    id="nodes/devices-missing",
    verdict="devices-missing",
    rule="The node offers every device that it has.",
    fix="Look for unhealthy devices and stale resources: kubectl describe node, logs of the device plugin.",
    level=Level.WARNING,
)
SPELLING = AuditCheck(
    id="nodes/two-spellings",
    verdict="two-spellings",
    rule="Shared devices of one class are spelled one way: by -SHARED in the product, or by .shared in the resource.",
    fix="Choose one value of renameByDefault for all nodes of the class.",
    level=Level.ERROR,
)
CONTRADICTION = AuditCheck(
    id="nodes/contradiction",
    verdict="contradiction",
    rule="Product label, resource name and replicas tell the same story: shared, or not.",
    fix="Give gpu-feature-discovery the device plugin's own config, and restart both.",
    level=Level.ERROR,
)
UNMARKED = AuditCheck(
    id="nodes/shared-unmarked",
    verdict="shared-unmarked",
    rule="The product label that rate cards key on tells a shared device from a whole one.",
    fix="Key rates on pool and replicas, not on the product label alone; or set renameByDefault: false.",
    level=Level.WARNING,
)
MIG_TIME_SLICED = AuditCheck(
    id="nodes/mig-time-sliced",
    verdict="mig-time-sliced",
    rule="MIG slices are not time-sliced: no call of the driver tells the pods on one slice apart.",
    fix="Take the slices out of the sharing config, or bill the share of the slice's memory and say so.",
    level=Level.ERROR,
)
MPS_WITH_MIG = AuditCheck(
    id="nodes/mps-with-mig",
    verdict="mps-with-mig",
    rule="MPS is not used with MIG, which the device plugin does not support.",
    fix="Use one or the other.",
    level=Level.ERROR,
)
MANY_REPLICAS = AuditCheck(
    id="nodes/many-replicas-allowed",
    verdict="many-replicas-allowed",
    rule="A request for more than one replica is refused: failRequestsGreaterThanOne is true.",
    fix="Set failRequestsGreaterThanOne: true beside the shared resources.",
    level=Level.ERROR,
)
MANY_ASKED = AuditCheck(
    id="nodes/many-replicas-asked",
    verdict="many-replicas-asked",
    rule="No pod asks for more than one replica of a shared device: two replicas are no more compute than one.",
    fix="Ask for one replica; for more compute, ask for a whole device.",
    level=Level.ERROR,
)
CONFIG_NOT_APPLIED = AuditCheck(
    id="nodes/config-not-applied",
    verdict="config-not-applied",
    rule="A node's replicas are those of the sharing config that its label names.",
    fix="Look at the label nvidia.com/device-plugin.config, and restart the device plugin there.",
    level=Level.ERROR,
)
DRA_EXPORTER = AuditCheck(
    id="nodes/dra-exporter-old",
    verdict="dra-exporter-old",
    rule="Where devices come by resource claims, the exporter follows the slices: 4.6.0-4.8.3 or newer.",
    fix="Use an exporter of 4.6.0-4.8.3 or newer there.",
    level=Level.ERROR,
)
DRA_SHARED = AuditCheck(
    id="nodes/claim-shared",
    verdict="claim-shared",
    rule="A claim of a device has one user, or says how many: the share of each is known.",
    fix="Give each pod a claim of its own, or account the claim as one holder.",
    level=Level.WARNING,
)
HELD_FOR_OTHERS = AuditCheck(
    id="nodes/held-for-others",
    verdict="held-for-others",
    rule="The pod that holds a device is the pod that uses it.",
    fix="Name holders by the scheduler's own annotations; the kubelet knows only its reservation pods.",
    level=Level.WARNING,
)
UNREADABLE = AuditCheck(
    id="nodes/unreadable-number",
    verdict="unreadable-number",
    rule="Counts and replicas, in labels and in what the kubelet offers, are whole numbers.",
    fix="Let gpu-feature-discovery write its labels again (delete the wrong one); nobody else should set them.",
    level=Level.ERROR,
)
PARTS = AuditCheck(
    id="nodes/parts-by-memory",
    verdict="parts-by-memory",
    rule="A share of a device is one number, which labels and resources tell: one of so many replicas.",
    fix="Meter its pods by what each asked for (a share of its own in the transition), never by a rate per replica.",
    level=Level.WARNING,
)
OTHER_MAKERS = AuditCheck(
    id="nodes/other-makers",
    verdict="other-makers",
    rule="Every accelerator of the cluster is one that is metered here: NVIDIA's.",
    fix="Say in reports that these devices are not in them; their reservation can be imported as transitions.",
    level=Level.NOTE,
)
TO_MACHINES = AuditCheck(
    id="nodes/to-virtual-machines",
    verdict="to-virtual-machines",
    rule="Whoever computes on a device of the node is a process or pod of the node.",
    fix="Meter the reservation of the virtual machine; an agent inside it sees who computes there.",
    level=Level.NOTE,
)
GIVEN_NAME = AuditCheck(
    id="nodes/given-name",
    verdict="given-name",
    rule="GPUs are offered as nvidia.com/gpu, nvidia.com/gpu.shared or nvidia.com/mig-*.",
    fix="Give the name to NVIDIA_RESOURCE_NAMES of the exporter, else pods that hold such a device get no label.",
    level=Level.NOTE,
)
NOT_READY = AuditCheck(
    id="nodes/not-ready",
    verdict="not-ready",
    rule="Every node with GPUs is ready, so that its devices are what it offers.",
    fix="Mend the node, or read its figures as UNKNOWN for that time.",
    level=Level.WARNING,
)
UNLABELLED = AuditCheck(
    id="nodes/unlabelled",
    verdict="unlabelled",
    rule="Every node with GPUs says which: product, count and replicas are labels.",
    fix="Run gpu-feature-discovery there; without its labels the class of the devices is UNKNOWN.",
    level=Level.WARNING,
)
MIG_UNSETTLED = AuditCheck(
    id="nodes/mig-unsettled",
    verdict="mig-unsettled",
    rule="The MIG layout that a node was told to take has been taken.",
    fix="Look at the logs of the MIG manager; until then the slices may change under their pods.",
    level=Level.WARNING,
)
TWICE = AuditCheck(
    id="nodes/seen-twice",
    verdict="seen-twice",
    rule="Each node stands once in what is audited.",
    fix="Audit one moment: kubectl get nodes -o json.",
    level=Level.WARNING,
)

CHECKS: tuple[AuditCheck, ...] = (
    MIXED_REPLICAS, LABEL_MISMATCH, SPELLING, CONTRADICTION, UNMARKED, MIG_TIME_SLICED, MPS_WITH_MIG, MANY_REPLICAS,
    MANY_ASKED, CONFIG_NOT_APPLIED, DRA_EXPORTER, DRA_SHARED, HELD_FOR_OTHERS, UNREADABLE, PARTS, DEVICES_MISSING,
    NOT_READY, UNLABELLED, MIG_UNSETTLED, TWICE, GIVEN_NAME, TO_MACHINES, OTHER_MAKERS,
)  # fmt: skip
"""Every check of this audit."""
