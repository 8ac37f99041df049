"""The units say what systemd understands, and what the agent needs: no right more, nothing that blinds it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from deploy.systemd_unit import ACCOUNTING, AGENT, SYSTEMD, read_unit, words
from e2e.machine import need
from gpuledger.ledger.places import SYSTEM_LEDGER
from gpuledger.sources.ebpf_host import CAPABILITIES

BLINDING = {"PrivateDevices", "ProtectProc", "ProcSubset", "PrivateUsers", "PrivateNetwork", "PrivatePIDs"}
"""Each hides from the agent what it is there to see: device nodes, other people's processes, the connector."""

MOST_EXPOSED = 25
"""Tenths of the points of ``systemd-analyze security``, 0 to 100; measured 20 with systemd 252."""


def test_the_agent_gets_the_capabilities_that_kernel_events_take_and_no_more() -> None:
    """Those it starts with are all that it, and whatever it starts, can ever have."""
    agent = read_unit(AGENT)
    assert sorted(words(agent, "AmbientCapabilities")) == sorted(CAPABILITIES)
    assert words(agent, "CapabilityBoundingSet") == words(agent, "AmbientCapabilities")
    assert words(agent, "NoNewPrivileges") == ["yes"]


def test_the_agent_is_a_user_of_its_own_whose_group_may_read() -> None:
    """The user is made by sysusers, the folder by systemd, and the ledger lies where readers look for it."""
    agent = read_unit(AGENT)
    made = (SYSTEMD / "gpuledger.sysusers").read_text(encoding="utf-8").splitlines()[-1].split()
    assert made[:2] == ["u", "gpuledger"]
    assert words(agent, "User") == words(agent, "Group") == words(agent, "StateDirectory") == [made[1]]
    assert words(agent, "StateDirectoryMode") == ["0750"]
    assert int(words(agent, "UMask")[0], 8) & 0o040 == 0
    assert Path(words(agent, "ExecStart")[-1]) == SYSTEM_LEDGER
    assert Path("/var/lib") / made[1] == SYSTEM_LEDGER.parent


def test_nothing_in_the_unit_blinds_the_agent() -> None:
    """Some hardening would hide what it looks at; netlink, bpf(2) and NVIDIA's nodes must be let through."""
    agent = read_unit(AGENT)
    assert not BLINDING & agent["Service"].keys()
    assert {"AF_UNIX", "AF_NETLINK"} <= set(words(agent, "RestrictAddressFamilies"))
    assert "bpf" in words(agent, "SystemCallFilter")
    assert {"char-195", "char-nvidia*"} <= set(words(agent, "DeviceAllow"))
    assert "RestrictRealtime" not in agent["Service"]  # the connector's reader asks for real-time priority
    assert int(words(agent, "LimitRTPRIO")[0]) >= 1
    assert "WatchdogSec" not in agent["Service"]  # the agent says nothing to systemd


def test_root_does_its_part_before_the_agent_and_again_after_the_driver_was_let_go() -> None:
    """Accounting is on before the first look; the daemon that holds the driver takes it along when it comes back."""
    root, agent = read_unit(ACCOUNTING), read_unit(AGENT)
    assert [line.lstrip("-").split()[1:] for line in root["Service"]["ExecStart"]] == [["-pm", "1"], ["-am", "1"]]
    assert (words(root, "Type"), words(root, "RemainAfterExit")) == (["oneshot"], ["yes"])
    assert not {"User", "DynamicUser"} & root["Service"].keys()
    daemon = "nvidia-persistenced.service"
    for name, section in (("Wants", "Unit"), ("After", "Unit"), ("PartOf", "Unit"), ("WantedBy", "Install")):
        assert daemon in words(root, name, section=section)
    for name in ("Wants", "After"):
        assert ACCOUNTING.name in words(agent, name, section="Unit")
    assert "Requires" not in agent["Unit"]  # without accounting there is still something to see


@pytest.fixture
def units(tmp_path: Path) -> list[Path]:
    """The units with a command that is there: neither nvidia-smi nor an installed agent is, where tests run."""
    need(shutil.which("systemd-analyze") is not None, "apt install systemd")
    for unit in (ACCOUNTING, AGENT):
        text = re.sub(r"^(ExecStart=-?)\S+", r"\1/bin/true", unit.read_text(encoding="utf-8"), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    return [tmp_path / ACCOUNTING.name, tmp_path / AGENT.name]


def test_systemd_understands_every_line(units: list[Path]) -> None:
    """No directive that it does not know, no value that it cannot read, no cycle in the order."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, units)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert not [line for line in done.stderr.splitlines() if "gpuledger" in line]


def test_systemd_counts_the_agent_as_little_exposed(units: list[Path]) -> None:
    """What is left open is what it is for: capabilities, processes, nodes, the host's network namespace."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSED}", "--no-pager", str(units[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    if "unrecognized option" in done.stderr:
        need(False, "systemd 250 or newer judges a unit that is not installed")
    assert done.returncode == 0, done.stdout + done.stderr


def test_sysusers_makes_the_user_without_a_shell(tmp_path: Path) -> None:
    """In a root of its own: no login, its home is the ledger's folder, its group has its name."""
    need(shutil.which("systemd-sysusers") is not None, "apt install systemd")
    (tmp_path / "etc").mkdir()
    command = ["systemd-sysusers", f"--root={tmp_path}", str(SYSTEMD / "gpuledger.sysusers")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    need(done.returncode == 0, f"systemd-sysusers works in a folder: {done.stderr.strip()}")
    name, _, uid, gid, _, home, shell = (tmp_path / "etc" / "passwd").read_text().strip().split(":")
    assert (name, home, shell.rsplit("/", 1)[-1]) == ("gpuledger", str(SYSTEM_LEDGER.parent), "nologin")
    assert uid != "0"
    assert (tmp_path / "etc" / "group").read_text().startswith(f"gpuledger:x:{gid}:")
