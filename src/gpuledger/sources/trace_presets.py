"""Traces that are known by name: each a map as a person would write it, and a start for a map of one's own."""

from __future__ import annotations

OPENB = """\
# The pod lists of openb: a production cluster of 1,213 GPU nodes with GPU sharing, published by Alibaba
# (clusterdata, cluster-trace-gpu-v2023). Times count seconds from the trace's own start, whose date was never
# published. A pod list names no machine and no card that was given: gpu_spec is what was asked for.
columns:
  id: name
  pending: creation_time
  start: scheduled_time
  end: deletion_time
  devices: num_gpu
  share: gpu_milli
  requested_class: gpu_spec
  outcome: pod_phase
labels: {qos: qos}
constants: {class: GPU}
units: {time: s, share: milli}
origin: 1970-01-01
failed: [Failed]
optional: [creation_time, gpu_spec, qos, pod_phase]
censored_at: 12902960
rows: {censored: open}
"""

PRESETS: dict[str, str] = {"openb": OPENB}
"""Name to map. All of them, in the order in which they are told."""
