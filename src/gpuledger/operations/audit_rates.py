"""``audit rates``: a policy's rates against nodes, with waivers laid over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuledger.audit.rates import audit_rates
from gpuledger.model.findings import AuditReport, Written
from gpuledger.operations.audit_files import gather, judged, waivers_of
from gpuledger.operations.audit_nodes import SUFFIXES
from gpuledger.operations.reading_files import read_text
from gpuledger.sources import policy_file


def rates(policy: Path, nodes: Sequence[Path], *, pool_label: str, waivers: Path | None, now_us: int) -> AuditReport:
    """Judge the rates of a policy file, overlapping ones too.

    Args:
        policy: the file, as it would be applied; ``-`` for stdin.
        nodes: what ``kubectl get nodes -o json`` printed; folders; ``-`` for stdin.
        pool_label: the label of nodes that names their pool, where the policy's hosts do not.
        waivers: a file of waivers.
        now_us: the present.

    Raises:
        Misconfigured, BadInput: a policy or a waiver that cannot be read, or a path that is not there.
    """
    given = waivers_of(waivers)
    text = read_text(policy, hint="give the policy file") if str(policy) == "-" else policy_file.read(policy)
    parsed, _ = policy_file.parse(text, path=str(policy), now_us=now_us, overlapping_rates=True)
    texts, unread = gather(nodes, suffixes=SUFFIXES)
    pools = {host: owner.pool for host, owner in parsed.hosts.items() if owner.pool}
    report = audit_rates(parsed.rates, texts, path=str(policy), now_us=now_us, pools=pools, pool_label=pool_label)
    commented = (Written(path=str(policy), text=text), *texts)
    return judged(report, texts=commented, waivers=given, unread=unread, now_us=now_us)
