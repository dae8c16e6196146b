"""Word times in torch, against the loops of openai-whisper. No model."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.whisper.torch.word_times import alignment_costs, first_frames


def path_of_loop(costs: np.ndarray) -> list[int]:
    """At which frame the cheapest path enters each row, as `dtw` of openai-whisper finds it."""
    rows, frames = costs.shape
    total = np.full((rows + 1, frames + 1), np.inf)
    total[0, 0] = 0
    came = np.full((rows + 1, frames + 1), -1)
    for frame in range(1, frames + 1):
        for row in range(1, rows + 1):
            before = total[row - 1, frame - 1], total[row - 1, frame], total[row, frame - 1]
            if before[0] < before[1] and before[0] < before[2]:
                came[row, frame] = 0
            elif before[1] < before[0] and before[1] < before[2]:
                came[row, frame] = 1
            else:
                came[row, frame] = 2
            total[row, frame] = costs[row - 1, frame - 1] + before[came[row, frame]]
    came[0, :], came[:, 0] = 2, 1
    row, frame = rows, frames
    starts = [0] * rows
    while row > 0 or frame > 0:
        if row > 0 and frame > 0:
            starts[row - 1] = frame - 1
        step = came[row, frame]
        row -= step in (0, 1)
        frame -= step in (0, 2)
    return starts


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 30))
@settings(max_examples=150, deadline=None)
def test_tokens_begin_where_the_path_of_the_loop_enters_their_rows(seed: int, rows: int, frames: int) -> None:
    source = np.random.default_rng(seed)
    both = source.normal(0, 1, (2, 10, 32))
    sizes = [(rows, frames), (int(source.integers(1, 10)), int(source.integers(1, 31)))]
    found = first_frames(torch.from_numpy(both), *torch.tensor(sizes).T)
    for costs, starts, (height, width) in zip(both, found.tolist(), sizes, strict=True):
        assert starts[:height] == path_of_loop(costs[:height, :width])


@pytest.mark.parametrize("frames", [1, 3, 4, 40])
def test_costs_are_those_of_one_window_at_a_time(frames: int) -> None:
    source = np.random.default_rng(frames)
    logits = source.normal(0, 2, (2, 3, 8, 40)).astype(np.float32)
    lengths, widths = [5, 8], [frames, 40]
    found = alignment_costs(torch.from_numpy(logits), torch.tensor(lengths), torch.tensor(widths))
    for row, of_window, tokens, width in zip(found.numpy(), logits, lengths, widths, strict=True):
        weights = np.exp(of_window[:, :tokens, :width].astype(np.float64))
        weights /= weights.sum(-1, keepdims=True)
        deviation = weights.std(1, keepdims=True)
        normal = (weights - weights.mean(1, keepdims=True)) / np.where(deviation, deviation, 1)
        if width > 3:
            mirrored = np.pad(normal, ((0, 0), (0, 0), (3, 3)), mode="reflect")
            normal = np.median(np.lib.stride_tricks.sliding_window_view(mirrored, 7, axis=-1), -1)
        assert row[:tokens, :width] == pytest.approx(-normal.mean(0), abs=1e-3)
