"""The simulated devices keep the driver's rules about rows."""

from __future__ import annotations

from gpuledger.sources.simulated_devices import RING, OpenContext, SimulatedGpu


def gpu_with(*pids: int) -> SimulatedGpu:
    """An accounted GPU on which these pids opened at 1 s, each with 184 MiB."""
    gpu = SimulatedGpu(uuid="GPU-a", product="NVIDIA L4", memory_mib=23034, accounting=True)
    for pid in pids:
        gpu.living[pid] = OpenContext(
            pid=pid, started_at_us=1_000_000, memory_mib=184, peak_mib=200, kinds="C", accounted=True
        )
    return gpu


def test_a_close_settles_the_row() -> None:
    """Time is end minus start in whole ms, memory the high-water mark."""
    gpu = gpu_with(7)
    gpu.close(7, 1_679_999)
    assert (gpu.dead[7].context_ms, gpu.dead[7].peak_mib) == (679, 200)
    assert gpu.living == {}


def test_an_unaccounted_context_leaves_no_row() -> None:
    """What was opened with the mode off is gone without a trace."""
    gpu = gpu_with(7)
    gpu.living[7].accounted = False
    gpu.close(7, 2_000_000)
    assert gpu.dead == {}


def test_a_second_stint_frees_the_older_row() -> None:
    """One dead row a pid; the new one stands last."""
    gpu = gpu_with(7, 8)
    gpu.close(7, 2_000_000)
    gpu.close(8, 3_000_000)
    gpu.living[7] = OpenContext(pid=7, started_at_us=4_000_000, memory_mib=1, peak_mib=1, kinds="C", accounted=True)
    assert gpu.listed() == [7, 8, 7]
    gpu.close(7, 5_000_000)
    assert gpu.listed() == [8, 7]


def test_a_full_ring_loses_its_oldest() -> None:
    """128 rows, whatever the API calls the buffer's size."""
    gpu = gpu_with(*range(1, RING + 2))
    for pid in range(1, RING + 2):
        gpu.close(pid, 2_000_000 + pid)
    assert list(gpu.dead) == list(range(2, RING + 2))


def test_a_clock_set_back_wraps_the_time_around() -> None:
    """The driver subtracts without a sign."""
    gpu = gpu_with(7)
    gpu.close(7, 999_000)
    assert gpu.dead[7].context_ms == (2**64 - 1000) // 1000


def test_switching_off_keeps_the_dead_and_forgets_the_running() -> None:
    """Stale rows stay; running ones never settle."""
    gpu = gpu_with(7, 8)
    gpu.close(7, 2_000_000)
    gpu.disable()
    assert gpu.listed() == [7]
    gpu.close(8, 3_000_000)
    assert gpu.listed() == [7]
