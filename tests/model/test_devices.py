"""What a device is called for accounting, and which UUIDs identify nothing."""

from __future__ import annotations

import pytest

from gpuledger.model.devices import class_name


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
