"""Naming: from the raw subject of an amount to who answers for it, by policy.

In: policy versions and identity texts. Out: an :class:`Owner` for each subject and moment. Service rules
hold for all time, so the newest version decides; owners hold from their effective date on.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuledger.accounting.services import built_in_service
from gpuledger.model.identity import IdentityText, subject_label
from gpuledger.model.policy import HostOwner, Policy, ServiceRule, UserOwner
from gpuledger.model.reasons import UNATTRIBUTED
from gpuledger.model.usage import NO_NAME

FORGOTTEN = "forgotten"
"""Service and subject of a key whose text was dropped by ``forget``: its amounts stand, its name is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Who answers for an amount. What nothing names is ``-``.

    Args:
        service: by the newest policy, a declaration, a built-in rule, else the subject.
        user: login name, as the kernel's uid gave it.
        team, project: by the service's rule, else as the workload says, else the user, else the namespace.
        namespace: Kubernetes namespace.
        workload: the control plane's id, the pod, or the batch job.
        subject: ``kind:value``, as evidence names it.
    """

    service: str
    user: str
    team: str
    project: str
    namespace: str
    workload: str
    subject: str


class Naming:
    """Resolves subjects, each once a policy version.

    Args:
        texts: identity texts by key; a key that is absent was forgotten.
        versions: ``(effective_from_us, policy)`` in the order in which they were applied. At any moment the
            owners of the version applied last hold, of those already in effect: a later document replaces
            an earlier one from its own date on.
    """

    def __init__(self, *, texts: Mapping[str, IdentityText], versions: Sequence[tuple[int, Policy]] = ()) -> None:
        self._texts = texts
        self._versions = tuple(versions)
        rules = self._versions[-1][1].services if self._versions else ()
        self._rules = tuple(
            (rule, [(operator.attrgetter(name), pattern.search) for name, pattern in rule.match.items()])
            for rule in rules
        )
        self._owners: dict[tuple[str, int], Owner] = {}
        self._answerers: dict[tuple[str, int], tuple[str, str, str]] = {}
        self._services: dict[str, tuple[str, ServiceRule | None]] = {}

    @property
    def changes_us(self) -> tuple[int, ...]:
        """The moments at which owners can change, sorted."""
        return tuple(sorted({effective_from_us for effective_from_us, _ in self._versions}))

    def owner(self, subject: str, at_us: int) -> Owner:
        """Who answered for a subject key in the hour that begins at ``at_us``.

        An unnamed subject (``unattributed:CAUSE``) keeps that as its service and has no owner.
        """
        version = self._version_at(at_us)
        key = (subject, version)
        if key not in self._owners:
            self._owners[key] = self._resolve(subject, version)
        return self._owners[key]

    def service(self, subject: str) -> str:
        """The service of a subject key: of all time, so no moment is asked. As :meth:`owner` has it."""
        text = self._texts.get(subject)
        return self._service(subject, text)[0] if text is not None else self.owner(subject, 0).service

    def host_owner(self, host: str, at_us: int) -> str:
        """The owner of a machine in the hour that begins at ``at_us``; ``-`` where policy names none."""
        version = self._version_at(at_us)
        policy_hosts: Mapping[str, HostOwner] = self._versions[version][1].hosts if version >= 0 else {}
        return (policy_hosts[host].owner or NO_NAME) if host in policy_hosts else NO_NAME

    def _version_at(self, at_us: int) -> int:
        for place in range(len(self._versions) - 1, -1, -1):
            if self._versions[place][0] <= at_us:
                return place
        return -1

    def _resolve(self, subject: str, version: int) -> Owner:
        text = self._texts.get(subject)
        if text is None:
            name = subject if subject.startswith(UNATTRIBUTED) else FORGOTTEN
            return Owner(
                service=name,
                user=NO_NAME,
                team=NO_NAME,
                project=NO_NAME,
                namespace=NO_NAME,
                workload=NO_NAME,
                subject=name,
            )
        return self._owner(text, version, *self._service(subject, text))

    def owner_of(self, text: IdentityText, at_us: int) -> Owner:
        """Who would answer at a moment for a text that stands in no ledger yet."""
        rule = self._rule(text)
        return self._owner(text, self._version_at(at_us), _service_name(text, rule), rule)

    def answerer(self, subject: str, at_us: int) -> tuple[str, str, str]:
        """User, team and project of :meth:`owner`; ``-`` where nothing names one."""
        version = self._version_at(at_us)
        key = (subject, version)
        found = self._answerers.get(key)
        if found is None:
            text = self._texts.get(subject)
            found = _UNKNOWN if text is None else self._answerer(text, version, self._rule(text))
            self._answerers[key] = found
        return found

    def answerer_of(self, text: IdentityText, at_us: int) -> tuple[str, str, str]:
        """User, team and project of :meth:`owner_of`: of many thousand texts the rest costs most, and is not asked."""
        return self._answerer(text, self._version_at(at_us), self._rule(text))

    def _owner(self, text: IdentityText, version: int, service: str, rule: ServiceRule | None) -> Owner:
        user, team, project = self._answerer(text, version, rule)
        return Owner(
            service=service,
            user=user,
            team=team,
            project=project,
            namespace=_namespace(text) or NO_NAME,
            workload=_workload(text),
            subject=subject_label(text),
        )

    def _answerer(self, text: IdentityText, version: int, rule: ServiceRule | None) -> tuple[str, str, str]:
        policy = self._versions[version][1] if version >= 0 else None
        user = policy.users.get(text.user, _NOBODY) if policy else _NOBODY
        team = (rule.team if rule else "") or text.team or user.team
        team = team or (policy.namespaces.get(_namespace(text), "") if policy else "")
        project = (rule.project if rule else "") or text.project or user.project
        return text.user or NO_NAME, team or NO_NAME, project or NO_NAME

    def _service(self, subject: str, text: IdentityText) -> tuple[str, ServiceRule | None]:
        if subject not in self._services:
            rule = self._rule(text)
            self._services[subject] = (_service_name(text, rule), rule)
        return self._services[subject]

    def _rule(self, text: IdentityText) -> ServiceRule | None:
        """The first rule whose every pattern is found in its field; an empty field holds nothing to find."""
        for rule, patterns in self._rules:
            for value_of, search in patterns:
                value = value_of(text)
                if not value or search(value) is None:
                    break
            else:
                return rule
        return None


_NOBODY = UserOwner()
_UNKNOWN = (NO_NAME, NO_NAME, NO_NAME)


def _service_name(text: IdentityText, rule: ServiceRule | None) -> str:
    return rule.service if rule else (text.service or built_in_service(text) or subject_label(text))


def _namespace(text: IdentityText) -> str:
    return text.namespace or (text.pod.split("/", 1)[0] if "/" in text.pod else "")


def _workload(text: IdentityText) -> str:
    if text.workload:
        return text.workload
    if text.pod or text.pod_uid:
        return f"pod:{text.pod or text.pod_uid}"
    return f"job:{text.slurm_job}" if text.slurm_job else NO_NAME
