"""Copies and spans of recordings from the real service, as players and editors ask for them."""

import io

import numpy as np
import psutil
import pytest
import soundfile

from tests.e2e.running import wait_for
from tests.media_files import GOOD, RATE, wav_header
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings

pytestmark = pytest.mark.timeout(180)


def audio(server, job, headers=None, **query):
    return server.client.get(f"/v1/jobs/{job}/audio", params={"format": "flac"} | query, headers=headers)


def samples(content: bytes):
    """The samples of a file, shape (n, channels), and its rate in Hz."""
    return soundfile.read(io.BytesIO(content), dtype="int16", always_2d=True)


def own_samples(path):
    """A recording as a worker decodes it for a copy: its samples, shape (n, channels), and its rate in Hz."""
    findings = Findings()
    pcm = np.frombuffer(b"".join(decoded_pcm(path, findings, output=None)), "<i2")
    return pcm.reshape(-1, findings.pcm_format.channels), findings.pcm_format.rate


def delay(original, copied, limit: int) -> int:
    """The delay of one signal, in samples, with the highest cross-correlation."""
    size = 2 ** (len(original) + limit).bit_length()
    spectrum = np.fft.rfft(copied.astype(float), size) * np.conj(np.fft.rfft(original.astype(float), size))
    correlation = np.fft.irfft(spectrum, size)
    return int(np.argmax(np.concatenate([correlation[-limit:], correlation[: limit + 1]]))) - limit


def stereo_wav(speech) -> bytes:
    """Two different channels of 44.1 kHz."""
    wide = np.stack([speech, np.roll(speech, 5000) // 2], axis=1)
    return wav_header(wide.nbytes, channels=2, rate=44_100) + wide.tobytes()


RECORDINGS = {
    "mono.wav": GOOD["wav 16 bit"].encode,
    "stereo.wav": stereo_wav,
    "stereo.mp3": GOOD["mp3 44.1 kHz stereo"].encode,
    "video.mp4": GOOD["mp4 video aac"].encode,
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("mono.wav", marks=pytest.mark.soak),
        "stereo.wav",
        pytest.param("stereo.mp3", marks=pytest.mark.soak),
        "video.mp4",
    ],
)
def test_copies_and_spans_have_the_right_samples_at_the_right_place(emptied, tmp_path, talk_pcm, name):
    path = tmp_path / name
    path.write_bytes(RECORDINGS[name](talk_pcm[: 12 * RATE]))
    expected, rate = own_samples(path)
    job = emptied.submit(path)["id"]
    duration = emptied.finished(job)["duration"]
    query = {"start": 2.34567, "end": 2.34567 + 1.7}
    of_recording = audio(emptied, job, **query)  # no copy is there yet
    copy = audio(emptied, job)
    assert copy.headers["content-disposition"] == f'inline; filename="{path.stem}.flac"'
    assert samples(copy.content)[1] == rate
    assert np.array_equal(samples(copy.content)[0], expected)
    if name.endswith(".wav"):
        lossless = samples(path.read_bytes())[0]
        assert np.array_equal(expected, lossless), "the FLAC copy has the samples of the file"
    span = expected[round(query["start"] * rate) : round(query["end"] * rate)]
    assert np.array_equal(samples(of_recording.content)[0], span)
    assert np.array_equal(samples(audio(emptied, job, **query).content)[0], span)
    assert np.array_equal(samples(audio(emptied, job, end=duration).content)[0], expected)
    ogg, ogg_rate = samples(audio(emptied, job, format="ogg").content)
    assert (ogg.shape, ogg_rate) == (expected.shape, rate)
    ogg_span, _ = samples(audio(emptied, job, format="ogg", **query).content)
    for original, copied in ((expected, ogg), (span, ogg_span)):
        for channel in range(original.shape[1]):
            assert delay(original[:, channel], copied[:, channel], rate // 10) == 0
            assert np.corrcoef(original[:, channel], copied[:, channel])[0, 1] > 0.95
    too_late = audio(emptied, job, start=duration + 1)
    assert (too_late.status_code, too_late.json()["error"]["param"]) == (400, "start")
    emptied.client.delete(f"/v1/jobs/{job}").raise_for_status()
    wait_for(lambda: not emptied.left_files(), 20)


@pytest.mark.soak
def test_ten_minutes_are_encoded_in_flat_memory(emptied, tmp_path, talk_pcm, shorts):
    """48 kHz stereo: 115 MB of samples."""
    path = tmp_path / "ten_minutes.wav"
    stereo = np.repeat(np.resize(talk_pcm, 600 * 48_000), 2)
    path.write_bytes(wav_header(stereo.nbytes, channels=2, rate=48_000) + stereo.tobytes())
    warm = emptied.submit(shorts[0])["id"]
    for form in ("flac", "ogg"):
        assert audio(emptied, warm, format=form).status_code == 200
    emptied.finished(warm)
    job = emptied.submit(path)["id"]
    emptied.finished(job, 120)

    def memory() -> float:
        processes = [psutil.Process(emptied.pid), *emptied.media_workers()]
        return sum(process.memory_info().rss for process in processes) / 1e6

    before = memory()
    for query in ({}, {"start": 1, "end": 599}, {"format": "ogg", "end": 120}):
        with emptied.client.stream(
            "GET", f"/v1/jobs/{job}/audio", params={"format": "flac"} | query
        ) as answer:
            assert answer.status_code == 200
            assert sum(map(len, answer.iter_bytes())) > 1e6
        assert memory() - before < 60, query
    with emptied.client.stream(
        "GET", f"/v1/jobs/{job}/audio", params={"format": "flac", "start": 1, "end": 599}
    ) as answer:
        next(answer.iter_bytes())  # and goes away
    for done in (warm, job):
        emptied.client.delete(f"/v1/jobs/{done}").raise_for_status()
    wait_for(lambda: not emptied.left_files())
