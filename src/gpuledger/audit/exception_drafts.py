"""Drafts of an exception from Pod Security for exporters: namespace labels, or a policy exception of Kyverno.

A draft names who answers for it and when it ends; without either it is refused. Kyverno's ends by itself, as a
condition of it; plain labels do not, so the audit tells when their end has passed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpuledger.audit.pod_security import Breach
from gpuledger.errors import Misconfigured, Refused
from gpuledger.model.moments import iso

OWNER = "gpuledger/exception-owner"
UNTIL = "gpuledger/exception-until"
REASON = "gpuledger/exception-reason"
"""Annotations of a signed exception: what the audit reads back."""

ENFORCE = "pod-security.kubernetes.io/enforce"
"""The label by which a namespace says what it enforces."""

_REASON = "a GPU exporter has to see the processes of the host to tell pods on one device apart"

_KYVERNO: dict[str, tuple[str, str]] = {
    "Host Namespaces": ("disallow-host-namespaces", "host-namespaces"),
    "HostPath Volumes": ("disallow-host-path", "host-path"),
    "Privileged Containers": ("disallow-privileged-containers", "privileged-containers"),
    "Capabilities": ("disallow-capabilities", "adding-capabilities"),
    "Host Ports": ("disallow-host-ports", "host-ports-none"),
    "Volume Types": ("restrict-volume-types", "restricted-volumes"),
    "Privilege Escalation": ("disallow-privilege-escalation", "privilege-escalation"),
    "Running as Non-root": ("require-run-as-nonroot", "run-as-non-root"),
    "Running as Non-root user": ("require-run-as-non-root-user", "run-as-non-root-user"),
}
"""Policies and rules as Kyverno's own collection of Pod Security policies names them."""

_KYVERNO_RESTRICTED: dict[str, tuple[tuple[str, str], ...]] = {
    "Capabilities": (
        ("disallow-capabilities-strict", "require-drop-all"),
        ("disallow-capabilities-strict", "adding-capabilities-strict"),
    ),
    "HostPath Volumes": (("restrict-volume-types", "restricted-volumes"),),
    "Seccomp": (("restrict-seccomp-strict", "check-seccomp-strict"),),
}


class DraftKind(StrEnum):
    """What the exception is written for."""

    PLAIN = "plain"
    KYVERNO = "kyverno"


_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""A name as Kubernetes takes it; anything else from a text or a terminal would be YAML of its own in a draft."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exempted:
    """One exporter that needs the exception.

    Args:
        kind: ``DaemonSet``.
        name: of the workload; empty where a chart gives it.
        namespace: where it runs; empty where nobody has said.
        breaches: what the levels reject.
    """

    kind: str
    name: str
    namespace: str
    breaches: tuple[Breach, ...]


def draft(
    exempted: Sequence[Exempted], *, kind: DraftKind, owner: str, until_us: int | None, now_us: int, namespace: str = ""
) -> str:
    """A manifest of the exception, to be read before it is applied.

    Args:
        exempted: the exporters that need one.
        kind: labels of the namespace, or a PolicyException.
        owner: who answers for it.
        until_us: when it ends, microseconds UTC; None where nobody has said.
        now_us: the present, which an end must lie beyond.
        namespace: where those run that do not say it themselves.

    Raises:
        Refused: ``exception-needs-owner``, ``exception-needs-end`` or ``exception-is-over``.
        Misconfigured: ``exception-needs-namespace``, or ``nothing-to-except`` where every level admits them all.
    """
    if not owner.strip():
        raise Refused(
            "exception-needs-owner", "an exception without an owner is nobody's: none is drafted", hint="--owner NAME"
        )
    if until_us is None:
        raise Refused(
            "exception-needs-end",
            "an exception without an end stays for ever: none is drafted",
            hint="--until 2027-01-31",
        )
    if until_us <= now_us:
        raise Refused(
            "exception-is-over", f"it would have ended at {iso(until_us)} already", hint="--until a later date"
        )
    needing = [each for each in exempted if each.breaches]
    if not needing:
        raise Misconfigured(
            "nothing-to-except", "no exporter here needs an exception", hint="give the manifests of the exporter"
        )
    by_namespace: dict[str, list[Exempted]] = {}
    for each in needing:
        place = each.namespace or namespace
        if not place:
            raise Misconfigured(
                "exception-needs-namespace",
                f"the text does not say in which namespace {each.name or each.kind} runs",
                hint="--namespace NAME",
            )
        if not _NAME.fullmatch(place):
            message = f"{place[:80]!r} is no name of a namespace"
            raise Misconfigured("exception-needs-namespace", message, hint="--namespace gpu-operator")
        by_namespace.setdefault(place, []).append(each)
    write = _plain if kind is DraftKind.PLAIN else _kyverno
    return "---\n".join(write(place, each, owner.strip(), iso(until_us)) for place, each in by_namespace.items())


def _signed(owner: str, until: str) -> list[str]:
    return [
        "  annotations:",
        f"    {OWNER}: {_quoted(owner)}",
        f"    {UNTIL}: {_quoted(until)}",
        f"    {REASON}: {_quoted(_REASON)}",
    ]


def _because(exempted: list[Exempted]) -> list[str]:
    return [
        f"#   {breach.level.value} rejects {' '.join(breach.what.split())} ({breach.control})"
        for each in exempted
        for breach in each.breaches
    ]


def _plain(namespace: str, exempted: list[Exempted], owner: str, until: str) -> str:
    return _lines(
        f"# The namespace {namespace} admits privileged pods, for its exporter of GPU figures:",
        *dict.fromkeys(_because(exempted)),
        f"# Labels do not end by themselves. Take them back at {until}; gpuledger audit manifests tells when.",
        "# Let nothing else run in this namespace: the labels cover all of it.",
        "apiVersion: v1",
        "kind: Namespace",
        "metadata:",
        f"  name: {namespace}",
        *_signed(owner, until),
        "  labels:",
        f"    {ENFORCE}: privileged",
        "    pod-security.kubernetes.io/audit: baseline",
        "    pod-security.kubernetes.io/warn: baseline",
    )


def _kyverno(namespace: str, exempted: list[Exempted], owner: str, until: str) -> str:
    rules: dict[str, list[str]] = {}
    for each in exempted:
        for breach in each.breaches:
            baseline = breach.level.value == "baseline"
            named = (
                [_KYVERNO[breach.control]]
                if breach.control in _KYVERNO and (baseline or breach.control not in _KYVERNO_RESTRICTED)
                else []
            )
            for policy, rule in [*named, *_KYVERNO_RESTRICTED.get(breach.control, ())]:
                rules.setdefault(policy, [])
                rules[policy] += [name for name in (rule, f"autogen-{rule}") if name not in rules[policy]]
    excepted: list[str] = []
    for policy, names in rules.items():
        excepted += [f"    - policyName: {policy}", "      ruleNames:", *(f"        - {name}" for name in names)]
    named_all = all(_NAME.fullmatch(each.name) for each in exempted)
    names = list(dict.fromkeys(each.name for each in exempted)) if named_all else []
    resources = [*(f"                - {name}" for name in names), *(f"                - {name}-*" for name in names)]
    return _lines(
        f"# Kyverno admits the exporter of GPU figures in {namespace} until {until}, and not longer:",
        *dict.fromkeys(_because(exempted)),
        "# Policies and rules are named as in Kyverno's own Pod Security collection; put in your own names.",
        *([] if names else ["# It holds for every pod of the namespace, since no text names the workload: add names."]),
        "apiVersion: kyverno.io/v2",
        "kind: PolicyException",
        "metadata:",
        "  name: gpu-exporter-sees-host-processes",
        f"  namespace: {namespace}",
        *_signed(owner, until),
        "spec:",
        "  match:",
        "    any:",
        "      - resources:",
        "          kinds:",
        "            - Pod",
        *dict.fromkeys(f"            - {each.kind}" for each in exempted if each.kind != "Pod"),
        "          namespaces:",
        f"            - {namespace}",
        *(["          names:", *(line.removeprefix("    ") for line in resources)] if names else []),
        "  conditions:",
        "    all:",
        f"      - key: \"{{{{ time_before(time_now_utc(), '{until}') }}}}\"",
        "        operator: Equals",
        "        value: true",
        "  exceptions:",
        *excepted,
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)
