"""What a device is called for accounting."""

from __future__ import annotations


def class_name(product: str, profile: str = "") -> str:
    """The accounting class of a product name as the driver spells it.

    ``NVIDIA A100-SXM4-40GB`` with profile ``1g.5gb`` is ``A100-SXM4-40GB/1g.5gb``; the vendor and a
    ``-SHARED`` suffix are dropped, blanks become dashes, as Kubernetes' product label does.
    """
    words = product.replace("NVIDIA", " ").split()
    name = "-".join(words).removesuffix("-SHARED").strip("-") or "unknown"
    return f"{name}/{profile}" if profile else name
