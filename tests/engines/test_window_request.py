"""The request for one window: its batch key, its expected cost, and its audio."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.engines.window_request import WindowRequest, expected_tokens
from workers.messages import SAMPLE_RATE, DecodingOptions, Window


@pytest.fixture
def request_in_the_middle(tmp_path: Path) -> WindowRequest:
    """Samples 100 to 200 of a recording of 300; each sample has two equal bytes, its number modulo 256."""
    pcm_path = tmp_path / "pcm"
    pcm_path.write_bytes(bytes(number % 256 for number in range(300) for _ in range(2)))
    return WindowRequest(pcm_path, 100, 200, ((110, 130), (150, 200)), DecodingOptions("demo"))


def test_tokens_are_expected_for_speech_and_not_for_silence() -> None:
    spans = ((0, 5 * SAMPLE_RATE), (20 * SAMPLE_RATE, 25 * SAMPLE_RATE))
    assert expected_tokens(spans) == 33


def test_a_window_has_its_own_samples_and_speech_from_its_start(request_in_the_middle: WindowRequest) -> None:
    assert request_in_the_middle.for_worker().read() == Window(
        pcm=bytes(number for number in range(100, 200) for _ in range(2)),
        speech=((10, 30), (50, 100)),
        decoding=DecodingOptions("demo"),
        start=100,
        end=200,
    )


def test_the_language_may_be_decided_when_a_worker_gets_the_window(
    request_in_the_middle: WindowRequest,
) -> None:
    elected: list[str | None] = [None]
    request = replace(request_in_the_middle, late_language=lambda: elected[0])
    assert request.for_worker().decoding.language is None
    elected[0] = "de"
    assert request.for_worker().decoding == DecodingOptions("demo", language="de")
    known = replace(
        request, decoding=DecodingOptions("demo", language="en")
    )  # in the first window of the clip
    assert known.for_worker().decoding.language == "en"


def test_a_speculative_request_and_a_retry_share_no_batch_with_others(
    request_in_the_middle: WindowRequest,
) -> None:
    other_language = replace(request_in_the_middle, decoding=DecodingOptions("demo", language="en"))
    speculative = replace(request_in_the_middle, speculative=True)
    assert request_in_the_middle.batch_key == other_language.batch_key
    assert speculative.batch_key != request_in_the_middle.batch_key
    retry = replace(request_in_the_middle, decoding=DecodingOptions("demo", no_repeat_ngram_size=3))
    assert retry.batch_key != request_in_the_middle.batch_key


def test_reading_fails_if_the_recording_is_gone(request_in_the_middle: WindowRequest) -> None:
    window = request_in_the_middle.for_worker()
    request_in_the_middle.pcm.unlink()
    with pytest.raises(FileNotFoundError):
        window.read()


def test_reading_fails_if_the_recording_is_too_short(request_in_the_middle: WindowRequest) -> None:
    window = request_in_the_middle.for_worker()
    os.truncate(request_in_the_middle.pcm, 2 * 200)
    assert window.read().samples == 100
    os.truncate(request_in_the_middle.pcm, 2 * 200 - 1)
    with pytest.raises(OSError, match="ends before sample 200"):
        window.read()


def test_a_worker_gets_a_window_in_memory_as_it_is() -> None:
    window = Window(bytes(20), ((0, 10),), DecodingOptions("demo"), end=10)
    assert WindowRequest(window.pcm, 0, 10, ((0, 10),), window.decoding).for_worker() == window
