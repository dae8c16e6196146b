"""Live streams and files on simulated workers."""

import statistics

from bench.live import CONTEXTS_S, CPU, FILES, GOAL_S, STREAMS_BESIDE, STREAMS_ON_CPU, simulate


def test_beside_files_streams_are_as_fast_and_cost_hardly_more_than_they_use() -> None:
    context_s, seconds = CONTEXTS_S[0], 14.0
    files = simulate(1, 0, context_s, files=FILES, seconds=seconds)
    streams = simulate(1, STREAMS_BESIDE, context_s, seconds=seconds)
    both = simulate(1, STREAMS_BESIDE, context_s, files=FILES, seconds=seconds)
    used = (both.device_s["draft"] + both.device_s["closed"]) / both.measured_s
    lost = 1 - both.windows["file"] / files.windows["file"]
    assert lost < used + 0.05
    assert both.median_s < streams.median_s + 0.3


def test_on_a_slow_worker_words_wait_for_half_a_second_of_a_file_at_most() -> None:
    alone, both = (
        simulate(1, STREAMS_ON_CPU, CONTEXTS_S[0], files=files, seconds=30, simulation=CPU, crowds=4)
        for files in (0, 4)
    )
    assert both.median_s < min(GOAL_S, alone.median_s + 0.4)
    assert both.windows["file"] / both.measured_s > 2, "they go on"


def test_where_workers_are_busy_first_words_come_before_more_of_other_turns() -> None:
    busy = simulate(1, 150, CONTEXTS_S[0], seconds=14.0)
    assert busy.median_s < 0.7 * statistics.median(busy.words_s)
