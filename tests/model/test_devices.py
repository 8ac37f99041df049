"""What a device is called for accounting, and which UUIDs identify nothing."""

from __future__ import annotations

import pytest

from gpuledger.model.devices import MASKED_UUID, class_name


@pytest.mark.parametrize(
    ("product", "profile", "name"),
    [
        ("NVIDIA A100-SXM4-40GB", "1g.5gb", "A100-SXM4-40GB/1g.5gb"),
        ("NVIDIA H100 80GB HBM3", "", "H100-80GB-HBM3"),
        ("Tesla T4", "", "Tesla-T4"),
        ("NVIDIA-L4-SHARED", "", "L4"),
        ("  NVIDIA  GeForce RTX 4090 ", "", "GeForce-RTX-4090"),
        ("", "", "unknown"),
        ("NVIDIA", "2g.10gb", "unknown/2g.10gb"),
    ],
)
def test_a_class_is_the_product_without_the_vendor(product: str, profile: str, name: str) -> None:
    """Blanks become dashes, a MIG profile follows after a slash; a device without a name is never an empty class."""
    assert class_name(product, profile) == name


@pytest.mark.parametrize(
    ("uuid", "masked"),
    [
        ("GPU-00000000-0000-0000-0000-000000000000", True),
        ("MIG-00000000-0000-0000-0000-000000000000", True),
        ("00000000-0000-0000-0000-000000000000", True),
        ("GPU-00000000-0000-0000-0000-000000000001", False),
        ("GPU-5a3c1f2e-1111-2222-3333-444455556666", False),
    ],
)
def test_a_zeroed_uuid_is_told_from_a_real_one(uuid: str, masked: bool) -> None:
    """Captures mask UUIDs; two machines must not merge because of it."""
    assert bool(MASKED_UUID.fullmatch(uuid)) is masked
