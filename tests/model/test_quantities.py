"""What measuring makes of evidence: values that are equal by what they say."""

from __future__ import annotations

import dataclasses

import pytest

from gpuledger.model.quantities import Coverage, Evidence, Quantity


def test_no_evidence_is_the_default() -> None:
    """Rows of a kind that nobody gave are none, not an error."""
    assert all(getattr(Evidence(), field.name) == () for field in dataclasses.fields(Evidence))


def test_the_order_of_evidence_is_no_part_of_a_quantity() -> None:
    """Two derivations from rows in another order are equal."""
    words = {"meter": "gpu.context", "hour_us": 0, "host": "box", "device": "GPU-0", "subject": "k"}
    first = Quantity(**words, context="settled", quantity=5, evidence=frozenset(["driver:a/1", "driver:a/2"]))
    second = Quantity(**words, context="settled", quantity=5, evidence=frozenset(["driver:a/2", "driver:a/1"]))
    assert first == second


def test_a_span_of_coverage_cannot_be_changed() -> None:
    """What was derived is a value."""
    span = Coverage(host="box", device="GPU-0", since_us=0, until_us=10, reason="")
    with pytest.raises(dataclasses.FrozenInstanceError):
        span.reason = "watch-gap"  # type: ignore[misc]
