"""Whose a context is: the command's own, surely another's, or one that could be the command's.

In: contexts, and which processes were seen to be the command's. Out: yes or no. A context is the command's

1. by identity: its process, known by boot id, pid and start, was seen in the command's tree;
2. by cgroup: the identity that names it was born in the command's own cgroup;
3. by pid and time: nothing names it, and a process of the tree had its pid then.

What none of these tells can be the command's only if it began after the command and is shorter than what
the scans of the tree can have missed; and, where it has a name, if there is no cgroup whose name it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuledger.model.identity import IdentityText
from gpuledger.model.missing import Missing
from gpuledger.model.moments import CLOCK_TOLERANCE_US
from gpuledger.model.quantities import Context
from gpuledger.model.reasons import UNATTRIBUTED, Cause
from gpuledger.model.receipt import Member, Membership, Ran

SCANS_TO_MEET = 2
"""A process that is handed to another parent while the tree is walked is met by the next scan."""


class Ownership:
    """Tells whose contexts are.

    Args:
        ran: the command.
        membership: which processes are its own.
        texts: identity texts by subject.
    """

    def __init__(self, ran: Ran, membership: Membership, texts: Mapping[str, IdentityText]) -> None:
        self._ran = ran
        self._membership = membership
        self._texts = texts
        self._members = {(one.pid, one.start_ticks) for one in membership.members}
        self._of_pid: dict[int, list[Member]] = {}
        for one in membership.members:
            self._of_pid.setdefault(one.pid, []).append(one)

    def members_of(self, pid: int) -> Sequence[Member]:
        """The command's processes that had a pid."""
        return self._of_pid.get(pid, ())

    def is_ours(self, context: Context) -> bool:
        """Whether a context is known to be the command's."""
        membership = self._membership
        name, text = membership.cgroup, self._texts.get(context.subject)
        if not isinstance(name, Missing) and text is not None and name in text.cgroup.split("/"):
            return True
        if not membership.are_the_drivers_pids:
            return False
        boot_id, ticks = context.process
        if ticks:
            return boot_id == membership.boot_id and (context.pid, ticks) in self._members
        if context.placed == "latest" or context.subject == UNATTRIBUTED + Cause.PID_AMBIGUOUS:
            return False
        start_us = context.spans[0][0]
        return any(
            one.born_us - CLOCK_TOLERANCE_US <= start_us <= one.seen_us + CLOCK_TOLERANCE_US
            for one in self.members_of(context.pid)
        )

    def overlaps(self, context: Context, slack_us: int = 0) -> bool:
        """Whether a context lies in the time of the command, widened by so much."""
        since_us, until_us = self._ran.began_us - slack_us, self._ran.ended_us + slack_us
        return context.spans[0][0] < until_us and context.last_seen_us >= since_us

    def could_be_ours(self, context: Context) -> bool:
        """Whether a context that nothing tells as ours can still be: it began after us, and was short."""
        if context.spans[0][0] < self._ran.began_us - CLOCK_TOLERANCE_US and context.placed != "latest":
            return False
        if not is_unnamed(context) and not isinstance(self._membership.cgroup, Missing):
            return False  # its identity would carry the cgroup's name
        return is_unsized(context) or context.context_ms * 1000 < SCANS_TO_MEET * self._membership.blind_us


def is_unnamed(context: Context) -> bool:
    """Whether nothing names it."""
    return context.subject.startswith(UNATTRIBUTED)


def is_unsized(context: Context) -> bool:
    """Whether nothing gives its length: seen once, and no start is known."""
    return not context.settled and isinstance(context.started_at_us, Missing) and not context.context_ms
