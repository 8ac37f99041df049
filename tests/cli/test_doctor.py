"""``gpuledger doctor``: 1 when something is missing, with the command that mends it."""

from __future__ import annotations

import pytest

from gpuledger.errors import Unavailable


def test_a_machine_without_a_driver_is_status_1(gpuledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told, not failed: the other checks are printed too."""

    def absent() -> None:
        raise Unavailable("driver-unreachable", "NVIDIA's library is not installed", hint="install it")

    monkeypatch.setattr("gpuledger.operations.start_agent.load_binding", absent)
    monkeypatch.setenv("PATH", "/nowhere")
    done = gpuledger("doctor", "--format", "json")
    assert done.status == 1
    checks = {check["name"]: check for check in done.json["checks"]}
    assert (checks["driver"]["verdict"], checks["ledger"]["verdict"]) == ("found", "note")
    assert "gpuledger demo" in gpuledger("doctor").out
    assert "driver" in gpuledger("doctor", "--format", "csv").out
