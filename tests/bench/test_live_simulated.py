"""Live streams and files on simulated workers."""

from bench.live import FILES, GOAL_S, STREAMS_BESIDE, WAYS, simulate


def test_streams_cost_files_hardly_more_than_they_use() -> None:
    way, seconds = WAYS[0], 14.0
    alone = simulate(1, 0, way, files=FILES, seconds=seconds)
    both = simulate(1, STREAMS_BESIDE, way, files=FILES, seconds=seconds)
    used = (both.device_s["draft"] + both.device_s["closed"]) / both.measured_s
    lost = 1 - both.windows["file"] / alone.windows["file"]
    assert lost < used + 0.05
    assert both.median_s < 1.25 * GOAL_S  # beside files, a draft waits for a large batch
