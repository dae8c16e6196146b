"""The voices of known speakers, decoded and embedded by real media workers."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from app.common.errors import InvalidInput, TaskCrashes
from app.intake.data_folder import DataFolder
from app.media.pool import MediaPool
from app.recording.known_speakers import PARAM, find_known_speakers
from app.recording.speaker_models import SpeakerModels
from app.transcript.speakers.voices import voice_windows
from tests.event_loop import until
from tests.media_files import RATE, Pcm, encode, read_pcm
from tests.workers.media.voice_models import VALUES, kaldi_model

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture(scope="module")
def dialogue() -> Pcm:
    return read_pcm(DATA / "dialogue.flac")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    folder = DataFolder(tmp_path_factory.mktemp("known"))
    folder.lock()
    return folder


@pytest.fixture(scope="module")
async def media(folder: DataFolder) -> AsyncIterator[MediaPool]:
    pool = MediaPool(1, folder.disk, SpeakerModels("").get)
    pool.start()
    yield pool
    await pool.stop()


def data_url(pcm: Pcm, container: str = "wav", codec: str = "pcm_s16le", kind: str = "audio/wav") -> str:
    return f"data:{kind};base64,{base64.b64encode(encode(pcm, container, codec)).decode()}"


def by_speaker(dialogue: Pcm) -> dict[str, list[Pcm]]:
    """Two recordings of each speaker, from cues of at least 1.9 s."""
    found: dict[str, list[Pcm]] = {}
    for cue in json.loads((DATA / "dialogue.json").read_text())["cues"]:
        if cue["end"] - cue["start"] >= 1.9 and len(found.setdefault(cue["speaker"], [])) < 2:
            found[cue["speaker"]].append(dialogue[round(cue["start"] * RATE) : round(cue["end"] * RATE)])
    return found


def assert_nothing_is_left(folder: DataFolder) -> None:
    assert [*folder.uploads.iterdir(), *folder.pcm.iterdir()] == []


async def test_each_voice_is_nearest_to_the_same_person(
    media: MediaPool, folder: DataFolder, dialogue: Pcm
) -> None:
    voices = by_speaker(dialogue)
    formats = [("webm", "libopus", "audio/webm;codecs=opus"), ("wav", "pcm_s16le", "AUDIO/wav")]
    first, second = [
        await find_known_speakers(
            media, folder, list(voices), [data_url(pcms[index], *formats[index]) for pcms in voices.values()]
        )
        for index in (0, 1)
    ]
    assert [speaker.name for speaker in first] == list(voices)
    assert {speaker.model for speaker in first} == {(await media.speaker_model()).identity}
    similarity = np.array([[one.embedding @ other.embedding for other in second] for one in first])
    np.testing.assert_array_equal(similarity.argmax(1), range(len(voices)))
    np.testing.assert_allclose([np.linalg.norm(one.embedding) for one in first], 1, rtol=1e-5)
    assert_nothing_is_left(folder)


async def test_silence_has_a_voice_of_no_meaning(media: MediaPool, folder: DataFolder) -> None:
    [speaker] = await find_known_speakers(media, folder, ["Ann"], [data_url(np.zeros(3 * RATE, np.int16))])
    assert np.isfinite(speaker.embedding).all()


WAV = "data:audio/wav;base64,"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("https://example.org/ann.wav", "is no data URL of a recording: write it as data:audio/wav;base64,…"),
        ("data:audio/wav,RIFF", "is no data URL"),
        ("data:text/html;base64,AAAA", "is no data URL"),
        (WAV + "AAA", "is not valid base64"),
        (WAV + "AA AA", "is not valid base64"),
        (WAV + "é", "is not valid base64"),
        (WAV, "cannot be used. The file is empty"),
        (WAV + "AAAA", "cannot be used. The file is neither audio nor video"),
        (1.5, "has 1.5 s. Send 2 to 10 s in which this person alone speaks."),
        (11.0, "is longer than 10 s. Send 2 to 10 s"),
    ],
)
async def test_a_reference_that_cannot_be_used_is_named(
    media: MediaPool, folder: DataFolder, dialogue: Pcm, url: str | float, message: str
) -> None:
    good = data_url(dialogue[: 3 * RATE])
    bad = data_url(dialogue[: round(url * RATE)]) if isinstance(url, float) else url
    with pytest.raises(InvalidInput) as raised:
        await find_known_speakers(media, folder, ["Ann", "Bob"], [good, bad] if url == WAV else [bad, good])
    name = "Bob" if url == WAV else "Ann"
    assert raised.value.message.startswith(f"The reference of {name!r} {message}")
    assert raised.value.param == PARAM
    assert_nothing_is_left(folder)


async def test_a_reference_on_which_the_model_fails_is_named(
    media: MediaPool, folder: DataFolder, dialogue: Pcm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def embed_voices(*args: object) -> None:
        raise TaskCrashes("3 processes crashed on it")

    monkeypatch.setattr(media, "embed_voices", embed_voices)
    with pytest.raises(InvalidInput, match=r"The reference of 'Ann' cannot be used: the model .* fails"):
        await find_known_speakers(media, folder, ["Ann"], [data_url(dialogue[: 3 * RATE])])
    assert_nothing_is_left(folder)


async def test_names_without_references_are_refused(media: MediaPool, folder: DataFolder) -> None:
    with pytest.raises(InvalidInput, match="There are 2 names and 1 references"):
        await find_known_speakers(media, folder, ["Ann", "Bob"], [WAV])


async def test_a_client_that_goes_away_leaves_nothing(
    media: MediaPool, folder: DataFolder, dialogue: Pcm
) -> None:
    urls = [data_url(dialogue[: 3 * RATE])] * 4
    task = asyncio.create_task(find_known_speakers(media, folder, ["A", "B", "C", "D"], urls))
    await until(lambda: list(folder.uploads.iterdir()))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert_nothing_is_left(folder)


async def test_a_model_in_a_file_embeds_them_as_well(
    folder: DataFolder, dialogue: Pcm, tmp_path: Path
) -> None:
    """From the setting to the embedding, with the worker's own check of the file."""
    models = SpeakerModels(str(kaldi_model(tmp_path / "voices.onnx")))
    pool = MediaPool(1, folder.disk, models.get)
    pool.start()
    models.start(pool.fault_of_speaker_model)
    try:
        [speaker] = await find_known_speakers(pool, folder, ["Ann"], [data_url(dialogue[: 3 * RATE])])
    finally:
        await models.stop()
        await pool.stop()
    assert speaker.embedding.shape == (VALUES,)
    assert len(voice_windows([(0, 3 * RATE)])) > 1
