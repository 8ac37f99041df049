"""What the two imports of histories share: the same answer from either, said and shown once."""

from __future__ import annotations

import json


def test_every_import_of_a_history_refuses_alike(gpuledger, tmp_path) -> None:
    """A file that is not there is one error, whichever reader was to read it; nothing is made of it."""
    missing = str(tmp_path / "no-such-file")
    trace = gpuledger("import", "trace", missing, "--preset", "openb", "--format", "json")
    slurm = gpuledger("import", "slurm", missing, "--zone", "UTC", "--format", "json")
    assert trace.status == slurm.status == 2
    assert missing in trace.err
    assert missing in slurm.err
    assert (trace.out, slurm.out) == ("", "")


def test_what_came_of_it_is_one_shape(gpuledger, tmp_path) -> None:
    """The same keys of JSON from a Slurm dump and from a trace."""
    dump = tmp_path / "sacct.txt"
    dump.write_text(
        "JobID|Cluster|User|Account|State|Start|End|AllocTRES\n"
        "7|c|al|lab|COMPLETED|2026-07-01T00:00:00|2026-07-01T01:00:00|gres/gpu=1\n",
        encoding="utf-8",
    )
    pods = tmp_path / "pods.csv"
    pods.write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
        "p,1000,1024,1,1000,,LS,Succeeded,0,3600,0\n",
        encoding="utf-8",
    )
    slurm = gpuledger("import", "slurm", str(dump), "--zone", "UTC", "--format", "json")
    trace = gpuledger("import", "trace", str(pods), "--preset", "openb", "--format", "json")
    assert (slurm.status, trace.status) == (0, 0), slurm.err + trace.err
    assert json.loads(slurm.out).keys() == json.loads(trace.out).keys()
