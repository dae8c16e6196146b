"""Live streams and files on simulated workers."""

from bench.live import FILES, GOAL_S, STREAMS_BESIDE, WAYS, simulate


def test_beside_files_streams_are_as_fast_and_cost_hardly_more_than_they_use() -> None:
    way, seconds = WAYS[0], 14.0
    files = simulate(1, 0, way, files=FILES, seconds=seconds)
    streams = simulate(1, STREAMS_BESIDE, way, seconds=seconds)
    both = simulate(1, STREAMS_BESIDE, way, files=FILES, seconds=seconds)
    used = (both.device_s["draft"] + both.device_s["closed"]) / both.measured_s
    lost = 1 - both.windows["file"] / files.windows["file"]
    assert lost < used + 0.05
    assert both.median_s < min(GOAL_S, streams.median_s + 0.1)  # the delay stays
