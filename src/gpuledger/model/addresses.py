"""Devices that have no UUID on their host: handed through to a guest, they are named by host and address.

A GPU bound to vfio, or lent to a macOS guest, has no driver on the host that could give its UUID. What is left is where
it sits: ``lab-3/0000:65:00.0``, or ``mac-1/gpu0`` where the platform has no PCI addresses.
"""

from __future__ import annotations

import re

from gpuledger.errors import Misconfigured

_PCI = r"(?:(?P<domain>[0-9a-fA-F]{4,8}):)?(?P<place>[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_INDEX = re.compile(r"(?:/dev/)?(?:gpu|nvidia|cuda:?|card)?(?P<number>[0-9]{1,4})", re.IGNORECASE)
_ADDRESS = re.compile(rf"(?:(?P<host>[^/\s]+)/)?(?:{_PCI}|(?P<slot>gpu[0-9]{{1,3}}))")


def device_named(text: str, machine: str) -> str:
    """The name of a device as typed: its UUID as it stands; an address with its host, in one spelling.

    Args:
        text: ``GPU-...``, ``MIG-...``, ``0000:65:00.0``, ``lab-3/65:00.0``.
        machine: the host of an address that names none.

    Raises:
        Misconfigured: ``bad-placement`` for an address without a host, which would be one device on every machine.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None:
        return text
    host = found["host"] or machine
    if not host:
        raise Misconfigured(
            "bad-placement",
            f"{text} is an address, and on which machine is not said",
            hint=f"--machine HOST --devices {text}",
        )
    if found["slot"]:
        return f"{host}/{found['slot']}"
    domain = (found["domain"] or "0").lower().lstrip("0").rjust(4, "0")
    return f"{host}/{domain}:{found['place'].lower()}"


def is_index(text: str) -> bool:
    """Whether a device is named by its number on one machine, ``0``, ``nvidia0``, ``cuda:1``: another on each.

    ``gpu0`` is one too where a batch system says it; who reserves a device says it of a platform without PCI addresses.
    """
    return _INDEX.fullmatch(text) is not None


def indexed(text: str, machine: str) -> str:
    """The name of a device that a batch system numbers: ``m1/0`` for ``0``, ``gpu0`` and ``cuda:0`` of machine ``m1``.

    It is no address: that somebody numbers devices does not say that they are handed through.
    """
    found = _INDEX.fullmatch(text)
    return f"{machine}/{int(found['number'])}" if found else device_named(text, machine)


def lacks_host(device: str) -> bool:
    """Whether a device is named by an address alone, which is one on every machine."""
    found = _ADDRESS.fullmatch(device)
    return found is not None and not found["host"]


def is_address(device: str) -> bool:
    """Whether a device is named by host and address, so that no driver of the host sees it."""
    found = _ADDRESS.fullmatch(device)
    return found is not None and bool(found["host"])


def host_of(device: str) -> str:
    """The host of a device that is named by host and address."""
    return device.partition("/")[0]
