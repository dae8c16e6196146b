"""What a worker measures of a batch: the demo model in this process."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from app.engines.model_files import DEMO_PATH
from tests.media_files import read_pcm
from workers import calls
from workers.messages import DecodingOptions, LoadOptions, Window
from workers.whisper import worker as whisper

DATA = Path(__file__).parents[2] / "data"
DECODING = ["features", "encode", "detect language", "generate text", "align words"]


@pytest.fixture(scope="module", autouse=True)
def demo() -> Iterator[None]:
    loads = whisper._loads
    answer = calls.answer({}, whisper.load, LoadOptions("demo", str(DEMO_PATH), "cpu", "int8", 1))
    assert [part.name for part in answer.parts] == ["load model"]
    yield
    whisper.unload("demo")
    whisper._loads = loads  # other tests of this process count them


def window(name: str, prompt: str | None = None) -> Window:
    pcm = read_pcm(DATA / f"{name}.flac")
    return Window(
        pcm.astype("<i2").tobytes(), ((0, len(pcm)),), DecodingOptions("demo", prompt=prompt, beam_size=1)
    )


def names(answer: calls.Answer[object]) -> list[str]:
    assert all(before.end <= after.start for before, after in pairwise(answer.parts))
    return [part.name for part in answer.parts]


def test_a_batch_has_the_parts_of_its_decoding() -> None:
    assert names(calls.answer({}, whisper.decode, [window("short00"), window("short01")])) == DECODING


def test_windows_that_cannot_be_decoded_together_have_parts_of_their_own() -> None:
    answer = calls.answer({}, whisper.decode, [window("short00"), window("short01", "a prompt")])
    assert names(answer) == [*DECODING, *DECODING]
