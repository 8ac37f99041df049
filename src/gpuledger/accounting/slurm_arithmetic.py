"""Quotients as Slurm finds them: in binary floating point, here made of integers, so that no machine differs.

Slurm's Fair Tree compares quotients of ``double`` and ``long double``. Two that are equal as fractions can differ in
the last bit there, and Slurm's published ranks follow that bit (decision 0015). A quotient here is a pair (exponent,
mantissa) that stands for mantissa times 2^exponent. Every mantissa has all of its bits, so pairs of one width compare
as their values do.
"""

from __future__ import annotations

from fractions import Fraction

DOUBLE = 53
"""Bits of the mantissa of a C ``double``: normalized shares."""

LONG_DOUBLE = 64
"""Bits of the mantissa of a C ``long double`` on x86-64: usage, and what shares are divided by it to."""

Quotient = tuple[int, int]

INFINITE: Quotient = (1 << 30, 0)
"""More than every other."""

ZERO: Quotient = (-(1 << 30), 0)
"""Less than every other."""


def quotient(number: int, of: int, bits: int) -> Quotient:
    """``number / of``, both above 0, rounded to so many bits as IEEE 754 does: to the nearest, a tie to even."""
    exponent = number.bit_length() - of.bit_length() - bits
    mantissa, rest, divisor = _divided(number, of, exponent)
    if mantissa.bit_length() < bits:
        exponent -= 1
        mantissa, rest, divisor = _divided(number, of, exponent)
    elif mantissa.bit_length() > bits:
        exponent += 1
        mantissa, rest, divisor = _divided(number, of, exponent)
    if 2 * rest > divisor or (2 * rest == divisor and mantissa & 1):
        mantissa += 1
        if mantissa.bit_length() > bits:
            return exponent + 1, mantissa >> 1
    return exponent, mantissa


def _divided(number: int, of: int, exponent: int) -> tuple[int, int, int]:
    """Quotient and remainder of ``number / (of * 2^exponent)``, with the divisor of that remainder."""
    shifted, divisor = (number << -exponent, of) if exponent < 0 else (number, of << exponent)
    whole, rest = divmod(shifted, divisor)
    return whole, rest, divisor


def divide(left: Quotient, right: Quotient, bits: int) -> Quotient:
    """One quotient by another, rounded again."""
    exponent, mantissa = quotient(left[1], right[1], bits)
    return exponent + left[0] - right[0], mantissa


def value_of(found: Quotient) -> Fraction:
    """What a quotient stands for, exactly; neither for :data:`INFINITE` nor for :data:`ZERO`."""
    exponent, mantissa = found
    return Fraction(mantissa << exponent) if exponent >= 0 else Fraction(mantissa, 1 << -exponent)
