"""The voices of known speakers, from recordings that a request holds as data URLs."""

import asyncio
import base64
import re
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import numpy.typing as npt
import structlog

from app.common.concurrency import run_shielded
from app.common.errors import InvalidInput, TaskCrashes, TooLarge
from app.common.files import remove_files
from app.intake.data_folder import DataFolder
from app.intake.disk import disk_errors
from app.intake.uploads import Upload
from app.media.pool import MediaPool
from app.recording.clip_search import RecordingWork, find_speech
from app.recording.speech import VadParameters
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.speakers.voices import voice_windows

log = structlog.get_logger(__name__)

PARAM = "known_speaker_references[]"
MIN_S, MAX_S = 2, 10  # of a recording, as in OpenAI's API
_SLACK_S = 0.25  # encoders pad the sound
# RFC 2397. The media type of a recording may have parameters, as `audio/webm;codecs=opus`.
_DATA_URL = re.compile(r"data:(?:audio|video)/[\w.+-]+(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)
_EXAMPLE = "data:audio/wav;base64,…"


async def find_known_speakers(
    media: MediaPool, folder: DataFolder, names: Sequence[str], references: Sequence[str]
) -> tuple[KnownSpeaker, ...]:
    """The voice of each speaker, in order. `references`: a data URL of a recording of 2 to 10 s for each.

    No file is left, also if the caller is cancelled. Raises InvalidInput if a reference cannot be used,
    SpeakerModelUnavailable, DiskFull, and NotReady if no media worker starts.
    """
    if len(names) != len(references):
        raise _invalid(f"There are {len(names)} names and {len(references)} references. Send one for each.")
    model = (await media.speaker_model()).identity
    return tuple(
        [
            KnownSpeaker(name, await _voice(media, folder, name, reference), model)
            for name, reference in zip(names, references, strict=True)
        ]
    )


async def _voice(media: MediaPool, folder: DataFolder, name: str, url: str) -> npt.NDArray[np.float32]:
    """The voice in a data URL: the mean of all windows of speech, of length 1; shape (values,)."""
    title = f"The reference of {name!r}"
    job = uuid.uuid4().hex
    path, pcm_path = folder.uploads / job, folder.pcm / job
    try:
        size = await run_shielded(asyncio.to_thread(_write, folder, path, title, url))
        upload, longest_s = Upload(path, "", size, ""), MAX_S + _SLACK_S
        work = RecordingWork(
            job=job, upload=upload, media_pool=media, pcm_path=pcm_path, max_duration_s=longest_s
        )
        embeddings = await _embeddings(work, title)
    finally:
        media.cancel(job)
        await asyncio.to_thread(remove_files, (path, pcm_path))
    mean: npt.NDArray[np.float32] = embeddings.mean(0)
    mean /= np.maximum(np.linalg.norm(mean), np.float32(1e-6))
    return mean


def _write(folder: DataFolder, path: Path, title: str, url: str) -> int:
    """Write the recording in a data URL to a file. Returns its size in bytes."""
    head = _DATA_URL.match(url)
    if head is None:
        raise _invalid(f"{title} is no data URL of a recording: write it as {_EXAMPLE}")
    try:
        content = base64.b64decode(url[head.end() :], validate=True)
    except ValueError:  # also of characters beyond ASCII
        raise _invalid(f"{title} is not valid base64. Encode all of the file.") from None
    with disk_errors(), closing(folder.disk.reserve()) as space:
        space.check(len(content))
        path.write_bytes(content)
    return len(content)


async def _embeddings(work: RecordingWork, title: str) -> npt.NDArray[np.float32]:
    """The voice in each window of speech: shape (windows, values)."""
    remedy = f"Send {MIN_S} to {MAX_S} s in which this person alone speaks."
    try:
        found = await find_speech(work, VadParameters())
    except TooLarge:
        raise _invalid(f"{title} is longer than {MAX_S} s. {remedy}") from None
    except InvalidInput as error:
        raise _invalid(f"{title} cannot be used. {error.message}") from None
    if found.seconds < MIN_S - _SLACK_S:
        raise _invalid(f"{title} has {found.seconds:.1f} s. {remedy}")
    windows = voice_windows(found.spans) or voice_windows([(0, found.samples)])
    try:
        return await work.media_pool.embed_voices(work.job, work.pcm_path, windows)
    except (TaskCrashes, MemoryError, RuntimeError) as error:
        log.warning("the model of voices fails on a reference", error=repr(error))
        raise _invalid(
            f"{title} cannot be used: the model that embeds voices fails on it. Send another one."
        ) from error


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, param=PARAM)
