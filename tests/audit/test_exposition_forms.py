"""Query results and the exporter's log, as people paste them."""

from __future__ import annotations

import pytest

from gpuledger.audit.exposition import read_exposition
from gpuledger.audit.exposition_forms import api_series, device_of, excerpt, loose_sample, mapping_of

WHOLE = (
    'time="x" level=debug msg="Device to pod mapping: map[nvidia0:{Name:a Namespace:ns Container:c} '
    'nvidia0/vgpu1:{Name:b Namespace:ns Container:c} nvidia1:{Name:d Namespace:ns Container:c}]"'
)
SHARING = (
    'level=DEBUG msg="Device to sharing pods mapping: map[GPU-1:[{Name:a Namespace:n Container:c VGPU:0 '
    'Labels:map[x:y]} {Name:b Namespace:n Container:c VGPU:1}] GPU-1::0:[{Name:a Namespace:n Container:c VGPU:0}]]"'
)


def test_the_log_of_an_exporter_that_joins_one_pod() -> None:
    """The whole device has one pod, its replicas others: the figures go to the one."""
    mapping = mapping_of(WHOLE)
    assert mapping is not None
    first, second = mapping.named(7)
    assert (first.device, first.joined, first.pods, first.line) == ("nvidia0", "ns/a", ("ns/a", "ns/b"), 7)
    assert (second.joined, second.pods, second.sharing) == ("ns/d", ("ns/d",), False)


def test_the_log_of_an_exporter_with_virtual_gpus() -> None:
    """A list of pods a device; ids of replicas belong to it; labels between braces do no harm."""
    mapping = mapping_of(SHARING)
    assert mapping is not None
    (held,) = mapping.named(1)
    assert (held.device, held.joined, held.pods, held.sharing) == ("GPU-1", "", ("n/a", "n/b"), True)
    assert mapping_of("level=info msg=up") is None


@pytest.mark.parametrize(
    ("device_id", "device"),
    [("nvidia0/vgpu3", "nvidia0"), ("GPU-1::2", "GPU-1"), ("MIG-2::0", "MIG-2"), ("nvidia0/gi1", "nvidia0/gi1")],
)
def test_replicas_belong_to_their_device(device_id: str, device: str) -> None:
    """GKE's spelling and NVIDIA's; a MIG instance is a device of its own."""
    assert device_of(device_id) == device


def test_a_loose_sample() -> None:
    """Labels as far as they go, and nothing made up."""
    found = loose_sample('a{b="c", ...} 0.5 # same')
    assert found is not None
    assert (found.name, dict(found.labels), found.value, found.elided, found.queried) == ("a", {"b": "c"}, "0.5", 1, 0)
    bare = loose_sample('a{b="c"}')
    assert bare is not None
    assert (bare.value, bare.queried) == ("", 1)
    assert loose_sample('a{b=~"c"} 1') is not None
    assert loose_sample("a{b} 1") is None
    assert loose_sample("{} 1") is None


def test_the_json_of_the_query_api() -> None:
    """Vectors and matrices, with and without the envelope; the last figure of a range."""
    result = '[{"metric":{"__name__":"a","b":"c"},"value":[1,"2"]}]'
    vector = f'{{"status":"success","data":{{"resultType":"vector","result":{result}}}}}'
    matrix = '[{"metric":{"__name__":"a"},"values":[[1,"2"],[2,"3"]]}]'
    for text, value in ((vector, "2"), (matrix, "3")):
        found = read_exposition(text)
        assert [(each.name, each.value) for each in found.samples] == [("a", value)]
        assert found.queried


def test_json_that_is_no_answer() -> None:
    """Told as that, whatever it is; a brace alone is text."""
    assert [problem.code for problem in read_exposition('{"items": 3}').unread] == ["not-a-result"]
    assert [problem.code for problem in read_exposition('[1, {"metric": 3}]').unread] == ["not-a-sample"] * 2
    assert api_series("{broken") is None
    assert api_series("[" * 100_000) is None


def test_an_excerpt_is_short_and_printable() -> None:
    """What a file says cannot move a terminal's cursor."""
    assert excerpt("a\x1b[31mb") == "`a?[31mb`"
    assert len(excerpt("x" * 500)) == 65
