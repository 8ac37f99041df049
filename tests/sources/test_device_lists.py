"""Lists of devices in one cell: brackets, quotes, ranges, words for none."""

from __future__ import annotations

import pytest

from gpuledger.sources.device_lists import NO_NAMES, NamedTwice, devices_in


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0,1,2", ("0", "1", "2")), ("[0, 1]", ("0", "1")), ("['0', '1']", ("0", "1")), ("{0,1}", ("0", "1")),
        ('["GPU-a", "GPU-b"]', ("GPU-a", "GPU-b")), ("(gpu0;gpu1)", ("gpu0", "gpu1")), ("0+1", ("0", "1")),
        ("0 & 1", ("0", "1")), ("0|1", ("0", "1")), ("n1/0,n2/0", ("n1/0", "n2/0")), ("GPU-a GPU-a", ("GPU-a",)),
        ("0000:3b:00.0", ("0000:3b:00.0",)), ("", ()), ("[]", ()), ("  ", ()),
    ],
)  # fmt: skip
def test_signs_around_names_are_no_part_of_them(text: str, names: tuple[str, ...]) -> None:
    """A list that Python, JSON or a person wrote names the same devices as one with commas."""
    assert devices_in(text) == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0-3", ("0", "1", "2", "3")), ("[0-1,4]", ("0", "1", "4")), ("gpu2-3", ("gpu2", "gpu3")),
        ("n1/0-1", ("n1/0", "n1/1")), ("7-7", ("7",)), ("GPU-8f5c-1", ("GPU-8f5c-1",)), ("node1-2", ("node1-2",)),
    ],
)  # fmt: skip
def test_a_range_of_numbers_is_all_of_them(text: str, names: tuple[str, ...]) -> None:
    """As batch systems shorten them; names that only look so stay as they are."""
    assert devices_in(text) == names


@pytest.mark.parametrize("word", sorted(NO_NAMES))
def test_a_word_for_none_is_no_device(word: str) -> None:
    """It was counted as one of that name."""
    assert devices_in(word.upper()) == ()


@pytest.mark.parametrize("text", ["3-0", "0,0", "n1 / n2", "0,0-1"])
def test_what_is_no_list_of_devices_says_so(text: str) -> None:
    """Backwards, a number twice, a sign for a name: the cell is quoted."""
    with pytest.raises(ValueError, match=text):
        devices_in(text)


@pytest.mark.parametrize("text", ["0,0", "0,0-1", "gpu1 gpu1"])
def test_a_number_that_stands_twice_is_told_apart(text: str) -> None:
    """Whoever knows their number by other means may count them."""
    with pytest.raises(NamedTwice, match="twice: numbers of several machines, or a mistake"):
        devices_in(text)
