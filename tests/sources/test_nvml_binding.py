"""The edge to NVIDIA's library: every error has a meaning, and each becomes a sentence with a hint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpuledger.errors import Unavailable
from gpuledger.sources.nvml_binding import MEANINGS, Trouble, initialise, meaning_of, unavailable

ERRORS = sorted({value for name, value in vars(pynvml).items() if name.startswith("NVML_ERROR_")})


@pytest.mark.parametrize("number", ERRORS)
def test_every_error_of_the_installed_binding_has_a_meaning(number: int) -> None:
    """Complete against the binding: a new error in a new release fails here, not on a host."""
    assert number in MEANINGS
    meaning = meaning_of(pynvml.NVMLError(number))
    assert meaning is MEANINGS[number]
    assert meaning.sentence
    assert not meaning.sentence.endswith(".")
    assert meaning.hint


@pytest.mark.parametrize("number", ERRORS)
def test_every_error_at_the_start_becomes_unavailable(number: int) -> None:
    """Whatever nvmlInit says, the person reads a sentence and what to type next."""

    def start() -> None:
        raise pynvml.NVMLError(number)

    binding: Any = SimpleNamespace(nvmlInit=start)
    with pytest.raises(Unavailable) as caught:
        initialise(binding)
    assert MEANINGS[number].sentence in caught.value.message
    assert caught.value.hint
    assert caught.value.exit_status == 5


@pytest.mark.parametrize(
    "number",
    [
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        pynvml.NVML_ERROR_UNINITIALIZED,
    ],
)
def test_a_driver_that_is_not_there_is_unreachable(number: int) -> None:
    """No library, no module, or two versions: the driver as a whole, and the code says so."""
    assert meaning_of(pynvml.NVMLError(number)).trouble is Trouble.UNREACHABLE
    assert unavailable(pynvml.NVMLError(number), "x").code == "driver-unreachable"


def test_missing_rights_are_told_apart() -> None:
    """Root would help here, a driver would not."""
    assert unavailable(pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION), "x").code == "driver-forbidden"


def test_library_mismatch_means_that_the_call_is_absent() -> None:
    """The binding's unversioned calls raise an error that is no NVMLError on older drivers."""
    error = pynvml.NVMLLibraryMismatchError("too old")
    assert not isinstance(error, pynvml.NVMLError)
    assert meaning_of(error).trouble is Trouble.ABSENT


def test_success_raised_as_an_error_is_an_empty_list() -> None:
    """GetProcessUtilization raises NVMLError(0) where the first call finds nothing."""
    assert meaning_of(pynvml.NVMLError(0)).trouble is Trouble.GONE


def test_an_error_from_a_newer_library_names_its_number() -> None:
    """Unknown errors stop what they stop, and can be looked up."""
    meaning = meaning_of(pynvml.NVMLError(777))
    assert meaning.trouble is Trouble.FAILED
    assert "777" in meaning.sentence
