"""Batches of a worker: the demo model in this process."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.workers.whisper import windows
from workers import calls
from workers.messages import Window
from workers.whisper import worker as whisper
from workers.whisper.model import LoadedModel

window = partial(windows.window, beam_size=1)

pytestmark = [pytest.mark.usefixtures("demo"), pytest.mark.timeout(60)]


def test_a_window_whose_audio_cannot_be_read_costs_no_other(tmp_path: Path) -> None:
    audio = window("short00")
    path = tmp_path / "pcm"
    path.write_bytes(bytes(2 * 100) + audio.pcm)
    there = Window(b"", audio.speech, audio.decoding, str(path), 100, 100 + audio.samples)
    gone, cut_off = (
        replace(there, pcm_path=str(tmp_path / "gone")),
        replace(there, start=101, end=there.end + 1),
    )
    [expected] = whisper.decode([audio])
    first, *others, last = whisper.decode([there, gone, cut_off, audio])
    assert (first, last) == (expected, expected)
    assert [type(error) for error in others] == [FileNotFoundError, OSError]
    assert [type(error) for error in whisper.decode([gone])] == [FileNotFoundError]


def test_a_batch_whose_model_is_not_loaded_is_refused() -> None:
    audio = window("short00")
    other = replace(audio, decoding=replace(audio.decoding, model="other"))
    with pytest.raises(RuntimeError, match="'other' is not loaded"):
        whisper.decode([other])


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where threads decode parts of a batch."""
    monkeypatch.setattr(whisper._models["demo"].network, "threads", 3)


def test_a_batch_that_is_decoded_in_parts_has_the_same_answers(
    in_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["short00", "short01", "short02", "short03"]
    windows = [window(name, prompt=prompt) for name in names for prompt in (None, "a prompt")]
    assert whisper.decode(windows) == [answer for each in windows for answer in whisper.decode([each])]


def test_after_an_error_of_a_part_the_others_have_ended(
    in_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would still use memory while the batch is decoded again."""
    decode = LoadedModel._decode_together
    ended = []

    def fail_first(model: LoadedModel, windows: Sequence[Window]) -> Any:
        if windows[0].decoding.prompt:
            raise RuntimeError("CUDA failed with error out of memory")
        results = decode(model, windows)
        ended.append(len(windows))
        return results

    monkeypatch.setattr(LoadedModel, "_decode_together", fail_first)
    with pytest.raises(RuntimeError, match="out of memory"):
        whisper.decode([window("short00", prompt="a prompt"), window("short01"), window("short02")])
    assert sum(ended) == 2


DECODING = ["features", "encode", "detect language", "generate text", "align words"]


@pytest.mark.parametrize(("prompt", "parts"), [(None, DECODING), ("a prompt", [*DECODING, *DECODING])])
def test_a_batch_has_the_parts_of_its_decoding(prompt: str | None, parts: list[str]) -> None:
    """Windows that cannot be decoded together have parts of their own."""
    answer = calls.answer({}, whisper.decode, [window("short00"), window("short01", prompt=prompt)])
    assert [part.name for part in answer.parts] == parts
    assert all(before.end <= after.start for before, after in pairwise(answer.parts))
