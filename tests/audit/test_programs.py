"""Strings of programs: found with their lines, whatever the language puts around them."""

from __future__ import annotations

import time

from gpuledger.audit.plain import line_of
from gpuledger.audit.programs import strings, suffix_of
from gpuledger.model.findings import Written

X = "DCGM_FI_PROF_X"


def _found(path: str, text: str) -> list[tuple[str, int]]:
    return [(str(each), line_of(each)) for each in strings(Written(path=path, text=text))]


def test_strings_of_jsonnet() -> None:
    """Both quotes and text blocks; a comment is none, and what speaks of no device is left out."""
    text = f"""// '{X}'
{{ a: 'avg({X}{{gpu="0"}})', b: "max({X}) \\"q\\"",  # '{X}'
  c: |||
    sum by (pod) (
      {X}{{%(sel)s}}
    )
  ||| % {{}}, d: 'up' }}
"""
    assert _found("a.libsonnet", text) == [
        (f'avg({X}{{gpu="0"}})', 2),
        (f'max({X}) "q"', 2),
        (f"    sum by (pod) (\n      {X}{{$given}}\n    )\n", 4),
    ]


def test_strings_of_terraform() -> None:
    """A heredoc keeps its lines; what the program fills in is opaque, what it escapes is Grafana's own."""
    text = f'data = <<-EOT\n  expr: {X}{{pod="$${{pod}}"}}\n  EOT\nb = "avg({X}{{a=\\"${{local.b["c"]}}\\"}})"\n'
    assert _found("a.tf", text) == [(f'  expr: {X}{{pod="${{pod}}"}}\n', 2), (f'avg({X}{{a="$given"}})', 4)]


def test_strings_of_cue_and_dhall() -> None:
    """A hash begins a definition in the one, two dashes a comment in the other."""
    assert _found("a.cue", f'#P: {{expr: "avg({X})"}}\nb: """\n  max({X})\n  """\n') == [
        (f"avg({X})", 1),
        (f"\n  max({X})\n  ", 2),
    ]
    assert _found("a.dhall", f"-- \"{X}\"\n{{ expr = ''\n  avg({X})'' }}") == [(f"\n  avg({X})", 2)]


def test_what_ends_nowhere_takes_no_longer_than_the_text() -> None:
    """A hundred thousand openings without an end."""
    started = time.monotonic()
    for path, opening in (
        ("a.jsonnet", "|||\n"),
        ("a.tf", "<<E\n"),
        ("a.cue", "'"),
        ("b.jsonnet", "/*"),
        ("b.tf", '"'),
    ):
        assert _found(path, opening * 100_000 + X) == []
    many = "".join(f"<<E{each}\n" for each in range(50_000))
    assert _found("a.tf", many + X) == []
    assert time.monotonic() - started < 20


def test_the_end_of_a_name() -> None:
    """Lower case; none without a dot."""
    assert [suffix_of(path) for path in ("a/B.JSONNET", "Makefile", "x.y.tf")] == [".jsonnet", "", ".tf"]
