import contextlib
import multiprocessing
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pytest

from tests import media_files
from tests.media_files import BROKEN, GOOD, RATE, Pcm, encode, talk, wav_header
from tests.workers.media.decoding import STEP, decode, read, request, steps_of
from workers.media import sessions
from workers.media import tasks as media
from workers.media.tasks import WARM_UP_FRAMES
from workers.messages import BYTES_PER_SAMPLE, FRAME_SAMPLES, Decoded, RecordingRefused

# What people send. The other formats are tested in the soak.
USUAL = (
    "wav 16 bit", "wav 24 bit 48 kHz stereo", "wav u-law 8 kHz", "flac", "mp3 44.1 kHz stereo", "m4a aac",
    "ogg opus", "webm opus", "amr", "mp4 video aac", "mov video pcm", "mkv video opus",
)  # fmt: skip
FORMATS = [pytest.param(name, marks=() if name in USUAL else pytest.mark.soak) for name in GOOD]
# These encoders add a delay without declaring it, so all players shift the sound.
MAX_OFFSET_S = {"wma": 0.05, "avi video mp3": 0.026}
# Some of the formats that have the length of their sound.
DECLARED = (
    "aiff", "caf alac", "flac", "fragmented mp4", "m4a aac", "mka flac", "mov video pcm", "ogg opus", "tta",
    "w64", "wav 16 bit", "wav a-law 8 kHz", "wavpack", "webm opus",
)  # fmt: skip


@pytest.fixture(scope="module")
def speech() -> Pcm:
    return media_files.read_pcm(Path(__file__).parents[2] / "data" / "short01.flac")


@pytest.fixture(scope="module")
def long_speech(speech: Pcm) -> Pcm:
    return talk(20, speech)


@pytest.fixture(scope="module")
def child() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


def offset_s(original: Pcm, decoded: Pcm, limit_s: float = 0.5) -> float:
    """The delay of `decoded` with the highest cross-correlation."""
    limit = round(limit_s * RATE)
    size = len(original) + len(decoded) + 2 * limit
    spectrum = np.fft.rfft(decoded, size) * np.conj(np.fft.rfft(original, size))
    fit = np.fft.irfft(spectrum, size)
    lags = np.concatenate((np.arange(limit), np.arange(-limit, 0)))
    return float(lags[np.argmax(fit[lags])] / RATE)


def level(pcm: npt.NDArray[np.int16]) -> float:
    return float(np.sqrt(np.mean(pcm.astype(np.float64) ** 2)))


class TestFormats:
    @pytest.mark.parametrize("name", FORMATS)
    def test_every_format_gives_the_same_sound_at_the_same_time(
        self, name: str, speech: Pcm, tmp_path: Path
    ) -> None:
        step, pcm = decode(tmp_path, GOOD[name].encode(speech))

        assert (step.samples, step.finished, step.warnings) == (len(pcm), True, ())
        assert len(pcm) / RATE == pytest.approx(len(speech) / RATE, abs=0.1)
        assert abs(offset_s(speech, pcm)) < MAX_OFFSET_S.get(name, 0.025)
        assert level(pcm) == pytest.approx(level(speech), rel=0.15)

    @pytest.mark.parametrize("name", ["wav 16 bit", "flac", "mka flac", "caf", "w64"])
    def test_16_khz_mono_stays_as_it_is(self, name: str, speech: Pcm, tmp_path: Path) -> None:
        _, pcm = decode(tmp_path, GOOD[name].encode(speech))
        assert np.array_equal(pcm[: len(speech)], speech)

    @pytest.mark.parametrize("rate", [22_050, 24_000, 44_100, 48_000])
    def test_a_resampled_recording_keeps_the_top_of_its_sound(self, rate: int, tmp_path: Path) -> None:
        tone = (10_000 * np.sin(2 * np.pi * 7600 / rate * np.arange(rate))).astype("<i2")
        _, pcm = decode(tmp_path, wav_header(tone.nbytes, rate=rate) + tone.tobytes())
        assert level(pcm[1000:-1000]) > 0.7 * level(tone)

    @pytest.mark.parametrize("data_bytes", [0, 0xFFFFFFFF, 0x7FFFFFFF])
    def test_a_streamed_wav_has_no_length_in_its_header(
        self, data_bytes: int, speech: Pcm, tmp_path: Path
    ) -> None:
        _, pcm = decode(tmp_path, wav_header(data_bytes) + speech.tobytes())
        assert np.array_equal(pcm, speech)

    def test_raw_pcm(self, speech: Pcm, tmp_path: Path) -> None:
        (tmp_path / "upload").write_bytes(speech.tobytes() + b"\x01")
        step, pcm = decode(tmp_path, tmp_path / "upload", max_samples=1000, raw=True)
        assert step.finished
        assert np.array_equal(pcm, speech)

    def test_tags_in_an_unknown_encoding_do_no_harm(self, speech: Pcm, tmp_path: Path) -> None:
        tags = b"LIST" + struct.pack("<I", 18) + b"INFOIART" + struct.pack("<I", 6) + b"M\xfcller"
        header = wav_header(speech.nbytes)
        _, pcm = decode(tmp_path, header[:36] + tags + header[36:] + speech.tobytes())
        assert np.array_equal(pcm, speech)

    def test_invalid_floats_affect_only_their_own_samples(self, speech: Pcm, tmp_path: Path) -> None:
        floats = (speech / 32768).astype("<f4")
        floats[1000:1004] = [np.nan, np.inf, -np.inf, 1e30]
        _, pcm = decode(tmp_path, wav_header(floats.nbytes, bits=32, coding=3) + floats.tobytes())
        assert np.array_equal(np.delete(pcm, slice(1000, 1004)), np.delete(speech, slice(1000, 1004)))

    @pytest.mark.parametrize("channels", [2, 3, 6, 8, 12, 64])
    def test_channels_do_not_clip_and_the_only_one_with_sound_keeps_its_level(
        self, channels: int, speech: Pcm, tmp_path: Path
    ) -> None:
        full = np.full(RATE, 32_000, np.int16)
        everywhere = np.repeat(full, channels)
        only_last = np.zeros((RATE, channels), np.int16)
        only_last[:, -1] = full
        header = wav_header(everywhere.nbytes, channels=channels)

        _, loud = decode(tmp_path, header + everywhere.tobytes())
        _, soft = decode(tmp_path, header + only_last.tobytes())

        assert loud == pytest.approx(32_000, abs=2)
        assert soft == pytest.approx(32_000 / 2 if channels == 2 else 32_000, abs=2)


class TestTimeline:
    @pytest.mark.parametrize(
        ("container", "codec", "rate", "video"),
        [
            ("mp4", "aac", 48_000, "mpeg4"),
            ("mov", "pcm_s16le", 48_000, "mpeg4"),
            ("matroska", "libopus", 48_000, "mpeg4"),
            ("mpegts", "aac", 48_000, "mpeg2video"),
            ("flv", "aac", 44_100, "flv"),
        ],
    )
    @pytest.mark.parametrize("starts_at", [0.5, pytest.param(12.0, marks=pytest.mark.soak)])
    def test_sound_that_starts_late(
        self, container: str, codec: str, rate: int, video: str, starts_at: float, speech: Pcm, tmp_path: Path
    ) -> None:
        content = encode(speech, container, codec, rate=rate, video=video, audio_starts_at=starts_at)
        step, pcm = decode(tmp_path, content)

        silent = round((starts_at - 0.05) * RATE)
        assert not pcm[:silent].any()
        assert abs(offset_s(speech, pcm[round(starts_at * RATE) :])) < 0.025
        assert not step.warnings

    def test_a_file_starts_at_its_first_timestamp(self, speech: Pcm, tmp_path: Path) -> None:
        step, pcm = decode(tmp_path, encode(speech, "matroska", "pcm_s16le", audio_starts_at=30))
        assert np.array_equal(pcm, speech)
        assert not step.warnings

    @pytest.mark.parametrize("container", ["matroska", "nut"])
    def test_a_gap_between_timestamps_is_silence(self, container: str, speech: Pcm, tmp_path: Path) -> None:
        step, pcm = decode(tmp_path, encode(speech, container, "pcm_s16le", clock_jumps={3: 2.0}))

        assert np.array_equal(pcm[: 3 * RATE], speech[: 3 * RATE])
        assert not pcm[3 * RATE : 5 * RATE].any()
        assert np.array_equal(pcm[5 * RATE :], speech[3 * RATE :])
        [warning] = step.warnings
        assert (warning.code, warning.start, warning.end) == ("gap", 3, 5)
        assert warning.message == "Nothing was recorded from 0:03 to 0:05."

    def test_a_clock_that_goes_back_costs_no_sound(self, speech: Pcm, tmp_path: Path) -> None:
        step, pcm = decode(tmp_path, encode(speech, "matroska", "pcm_s16le", clock_jumps={3: -0.5}))
        assert np.array_equal(pcm, speech)
        assert not step.warnings

    def test_a_jump_of_days_resets_the_clock(self, speech: Pcm, tmp_path: Path) -> None:
        _, pcm = decode(tmp_path, encode(speech, "matroska", "pcm_s16le", clock_jumps={3: 400_000.0}))
        assert np.array_equal(pcm, speech)

    @pytest.mark.parametrize("name", ["ogg opus", "flac", "mp3 44.1 kHz stereo", "ts video aac"])
    def test_concatenated_files(self, name: str, speech: Pcm, tmp_path: Path) -> None:
        _, pcm = decode(tmp_path, GOOD[name].encode(speech) * 2)

        assert len(pcm) == pytest.approx(2 * len(speech), abs=RATE // 10)
        for half in np.split(pcm[: len(pcm) // 2 * 2], 2):
            assert abs(offset_s(speech, half)) < 0.05

    def test_the_sampling_rate_may_change(self, speech: Pcm, tmp_path: Path) -> None:
        content = GOOD["mp3 44.1 kHz stereo"].encode(speech) + GOOD["mp3 16 kHz"].encode(speech)
        _, pcm = decode(tmp_path, content)
        assert len(pcm) == pytest.approx(2 * len(speech), abs=RATE // 5)


class TestDeclaredLength:
    """A file that declares too long a recording is refused before it is decoded."""

    @pytest.mark.parametrize("name", DECLARED)
    def test_which_files_declare_their_length(self, name: str, speech: Pcm, tmp_path: Path) -> None:
        step, pcm = decode(tmp_path, GOOD[name].encode(speech))
        assert step.declared == pytest.approx(len(pcm), abs=RATE // 10)

    @pytest.mark.parametrize("name", ["mp3 44.1 kHz stereo", "aac adts", "ts video aac", "mkv video opus"])
    def test_other_lengths_are_estimates_or_those_of_pictures(
        self, name: str, speech: Pcm, tmp_path: Path
    ) -> None:
        step, _ = decode(tmp_path, GOOD[name].encode(speech))
        assert step.declared == 0

    @pytest.mark.parametrize("data_bytes", [0, 0xFFFFFFFF, 0x7FFFFFFF])
    def test_a_wav_file_is_not_longer_than_its_size(
        self, data_bytes: int, speech: Pcm, tmp_path: Path
    ) -> None:
        step, _ = decode(tmp_path, wav_header(data_bytes) + speech.tobytes())
        assert step.declared == pytest.approx(len(speech), abs=RATE)

    @pytest.mark.parametrize("raw", [True, False])
    def test_nothing_is_decoded_over_the_limit(self, raw: bool, speech: Pcm, tmp_path: Path) -> None:
        source, pcm_path = tmp_path / "upload", tmp_path / "pcm"
        source.write_bytes(speech.tobytes() if raw else GOOD["flac"].encode(speech))
        pcm_path.touch()

        def step_of(max_declared: float) -> Decoded:
            return media.decode("limited", request(source, pcm_path, raw=raw), STEP, max_declared)

        for _ in range(2):
            step = step_of(len(speech) - 1)
            assert (step.samples, step.finished, step.declared) == (0, False, len(speech))
        assert pcm_path.stat().st_size == 0
        assert step_of(len(speech)).finished
        assert np.array_equal(read(pcm_path), speech)

    def test_a_length_that_is_left_open(self, tmp_path: Path) -> None:
        step, pcm = decode(tmp_path, media_files.flac_of_silence(0.1, declared=False))
        assert (step.declared, len(pcm)) == (0, 360 * RATE)

    def test_a_step_of_long_frames_is_a_step(self, tmp_path: Path) -> None:
        """Each frame lasts a minute, and the mixer takes several."""
        (tmp_path / "upload").write_bytes(media_files.flac_of_silence(0.5))
        (tmp_path / "pcm").touch()
        step = media.decode("long frames", request(tmp_path / "upload", tmp_path / "pcm"), STEP)
        sessions.close("long frames")
        assert STEP <= step.samples < 3 * STEP


# What the reason says of the type of the file.
REASONS = {
    "pdf": "PDF",
    "html": "web page",
    "text": "is text",
    "m3u8": "playlist",
    "mp4 without moov": "looks like MP4",
    "mp4 video without sound": "no sound track",
    "encrypted mp4": "copy-protected",
}


class TestDamage:
    @pytest.mark.parametrize("name", BROKEN)
    def test_files_that_cannot_be_transcribed_are_refused_with_a_reason(
        self, name: str, tmp_path: Path
    ) -> None:
        make, code = BROKEN[name]
        with pytest.raises(RecordingRefused, match=REASONS.get(name)) as refused:
            decode(tmp_path, make())

        assert refused.value.code == code
        assert refused.value.message.endswith(".")
        assert not sessions._open

    @pytest.mark.parametrize(
        ("name", "warned"),
        [
            ("mp3 44.1 kHz stereo", False),  # players cannot tell either
            ("flac", True),
            ("wav 16 bit", False),
            ("ogg opus", False),
            ("webm opus", True),
            pytest.param("mka flac", True, marks=pytest.mark.soak),
            ("mkv video opus", False),  # its video may be longer than its sound
            pytest.param("ts video aac", True, marks=pytest.mark.soak),
            pytest.param("fragmented mp4", False, marks=pytest.mark.soak),
            pytest.param("flv video aac", False, marks=pytest.mark.soak),
        ],
    )
    def test_a_recording_that_is_cut_off_is_decoded_up_to_its_end(
        self, name: str, warned: bool, long_speech: Pcm, tmp_path: Path
    ) -> None:
        content = GOOD[name].encode(long_speech)
        step, pcm = decode(tmp_path, content[: len(content) * 6 // 10])

        assert 10 * RATE < len(pcm) < 13 * RATE
        assert abs(offset_s(long_speech[: len(pcm)], pcm)) < 0.025
        assert bool(step.warnings) == warned

    @pytest.mark.parametrize(
        "name",
        [
            "flac", "ogg opus", "webm opus",
            *(pytest.param(name, marks=pytest.mark.soak)
              for name in ("ogg vorbis", "ts video aac", "flv video aac", "m4a aac")),
        ],
    )  # fmt: skip
    def test_sound_after_damage_keeps_its_position(self, name: str, long_speech: Pcm, tmp_path: Path) -> None:
        content = bytearray(GOOD[name].encode(long_speech))
        middle, damaged = len(content) // 2, len(content) // 20
        content[middle : middle + damaged] = np.random.default_rng(2).bytes(damaged)

        _, pcm = decode(tmp_path, bytes(content))

        assert len(pcm) == pytest.approx(len(long_speech), abs=RATE // 10)
        assert abs(offset_s(long_speech[16 * RATE : 19 * RATE], pcm[16 * RATE : 19 * RATE])) < 0.1

    def test_bit_errors_in_an_mp3_are_skipped(self, long_speech: Pcm, tmp_path: Path) -> None:
        content = np.frombuffer(GOOD["mp3 44.1 kHz stereo"].encode(long_speech), np.uint8).copy()
        content[np.random.default_rng(3).integers(5000, len(content), 100)] ^= 0x10

        _, pcm = decode(tmp_path, content.tobytes())

        assert len(pcm) == pytest.approx(len(long_speech), abs=RATE // 2)

    @pytest.mark.parametrize(
        "name",
        [
            "m4a aac", "mkv video opus",
            *(pytest.param(name, marks=pytest.mark.soak) for name in ("wma", "ogg vorbis", "ts video aac")),
        ],
    )  # fmt: skip
    def test_a_damaged_header_is_decoded_or_refused(self, name: str, speech: Pcm, tmp_path: Path) -> None:
        content = np.frombuffer(GOOD[name].encode(speech), np.uint8)
        random = np.random.default_rng(4)
        for _ in range(20):
            damaged = content.copy()
            damaged[random.integers(0, 600, 5)] = random.integers(0, 256, 5)
            with contextlib.suppress(RecordingRefused):
                step, _ = decode(tmp_path, damaged.tobytes())
                assert step.samples


class TestForeignFiles:
    """A file must not make the service read another file."""

    @pytest.fixture
    def secret(self, speech: Pcm, tmp_path: Path) -> Path:
        (tmp_path / "secret.ts").write_bytes(GOOD["ts video aac"].encode(speech))
        return tmp_path / "secret.ts"

    @pytest.mark.parametrize(
        "content",
        [
            "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\n{path}\n#EXT-X-ENDLIST\n",
            "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{path}\n#EXT-X-ENDLIST\n",
            "ffconcat version 1.0\nfile {path}\n",
            "ffconcat version 1.0\nfile file:{path}\n",
            "<?xml version='1.0'?><MPD><Period><AdaptationSet mimeType='audio/mp4'><Representation>"
            "<BaseURL>{path}</BaseURL></Representation></AdaptationSet></Period></MPD>",
            "[playlist]\nFile1={path}\n",
        ],
    )
    def test_playlists_are_not_followed(self, content: str, secret: Path, tmp_path: Path) -> None:
        with pytest.raises(RecordingRefused) as refused:
            decode(tmp_path, content.format(path=secret).encode())
        assert refused.value.code == "not_audio"

    def test_movies_with_external_sound_are_not_followed(self, speech: Pcm, tmp_path: Path) -> None:
        external = tmp_path / "secret.mov"
        external.write_bytes(encode(speech, "mov", "pcm_s16le"))
        with pytest.raises(RecordingRefused):
            decode(tmp_path, media_files.mov_with_external_sound(external))


class TestSteps:
    def test_a_worker_that_replaces_another_writes_the_same_samples(
        self, speech: Pcm, tmp_path: Path
    ) -> None:
        (tmp_path / "upload").write_bytes(GOOD["ogg opus"].encode(speech))
        _, expected = decode(tmp_path, tmp_path / "upload")
        partial = tmp_path / "taken.pcm"
        partial.write_bytes(b"\x01" * 1_000_000)

        step = media.decode("taken", request(tmp_path / "upload", partial), RATE)
        assert np.array_equal(read(partial)[: step.samples], expected[: step.samples])
        assert partial.stat().st_size == 1_000_000  # others may be reading it
        media.decode("taken", request(tmp_path / "upload", partial), STEP)
        assert np.array_equal(read(partial), expected)

    def test_interleaved_jobs(self, speech: Pcm, tmp_path: Path) -> None:
        recordings = {"a": speech, "b": speech[::-1].copy()}
        for job, pcm in recordings.items():
            (tmp_path / job).write_bytes(GOOD["flac"].encode(pcm))
            (tmp_path / f"{job}.pcm").touch()

        running = list(recordings)
        while running:
            for job in list(running):
                if media.decode(job, request(tmp_path / job, tmp_path / f"{job}.pcm"), RATE).finished:
                    running.remove(job)

        for job, pcm in recordings.items():
            assert np.array_equal(read(tmp_path / f"{job}.pcm"), pcm)

    def test_close_closes_the_files(self, speech: Pcm, tmp_path: Path) -> None:
        (tmp_path / "upload").write_bytes(GOOD["wav 16 bit"].encode(speech))
        (tmp_path / "pcm").touch()
        before = psutil.Process().num_fds()

        assert not media.decode("cancelled", request(tmp_path / "upload", tmp_path / "pcm"), RATE).finished
        assert psutil.Process().num_fds() == before + 2
        sessions.close("cancelled")
        sessions.close("cancelled")

        assert psutil.Process().num_fds() == before
        assert not sessions._open

    def test_a_job_without_its_pcm_file_fails_and_creates_none(self, speech: Pcm, tmp_path: Path) -> None:
        """Its request was cancelled while the call was in a queue."""
        (tmp_path / "upload").write_bytes(GOOD["wav 16 bit"].encode(speech))
        with pytest.raises(FileNotFoundError):
            media.decode("gone", request(tmp_path / "upload", tmp_path / "pcm"), RATE)
        assert not (tmp_path / "pcm").exists()
        assert not sessions._open

    def test_a_full_disk_is_an_os_error(self, speech: Pcm, tmp_path: Path) -> None:
        (tmp_path / "upload").write_bytes(GOOD["wav 16 bit"].encode(speech))
        with pytest.raises(OSError, match="No space left"):
            media.decode("full", request(tmp_path / "upload", Path("/dev/full")), STEP)
        assert not sessions._open

    def test_costly_sound_is_decoded_in_shorter_steps(self, tmp_path: Path) -> None:
        """A step of sound that is as long, and of speech, is one."""
        (tmp_path / "silence").write_bytes(media_files.costly_silence(60))
        assert len(steps_of(tmp_path / "silence", [tmp_path / "pcm"])) >= 3

    def test_the_samples_do_not_depend_on_how_long_steps_take(
        self, long_speech: Pcm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "upload"
        path.write_bytes(encode(long_speech, "mp3", "libmp3lame", rate=44_100))
        whole, expected = decode(tmp_path, path)
        monkeypatch.setattr("workers.calls.has_taken_long", lambda began_s, usual_s: True)
        steps = steps_of(path, [tmp_path / "pcm"])
        assert len(steps) >= 19
        assert b"".join(step.peaks for step in steps) == whole.peaks
        np.testing.assert_array_equal(read(tmp_path / "pcm"), expected)

    def test_memory_is_flat_in_length(self, tmp_path: Path) -> None:
        size = 44 + 3600 * RATE * BYTES_PER_SAMPLE  # an hour
        path = tmp_path / "upload"
        path.write_bytes(wav_header(size - 44))
        os.truncate(path, size)
        (tmp_path / "pcm").touch()
        process = psutil.Process()

        memory = []
        finished = False
        while not finished:
            finished = media.decode("long", request(path, tmp_path / "pcm"), 5 * STEP).finished
            memory.append(process.memory_info().rss)

        assert len(memory) >= 8
        assert memory[-1] - memory[0] < 20_000_000


@pytest.fixture(scope="module")
def pcm_path(speech: Pcm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("speech") / "pcm"
    talk(40.01, speech).tofile(path)
    return path


class TestSpeechProbabilities:
    def probabilities(self, path: Path, start: int, frames: int) -> npt.NDArray[np.float32]:
        return np.frombuffer(media.speech_probabilities(str(path), start, frames), "<f4")

    def test_speech_is_found_at_its_position(self, pcm_path: Path) -> None:
        speaking = self.probabilities(pcm_path, 0, 200) > 0.5
        spoken = np.zeros(200, bool)  # in the recording's transcript: 0.75 to 2.13 s and 2.89 to 5.27 s
        for start, end in [(0.75, 2.13), (2.89, 5.27)]:
            spoken[round(start * RATE / FRAME_SAMPLES) : round(end * RATE / FRAME_SAMPLES)] = True
        assert np.mean(speaking == spoken) > 0.85

    def test_consecutive_spans_are_like_one_run(self, pcm_path: Path) -> None:
        at_once = self.probabilities(pcm_path, 0, 10_000)
        spans = [self.probabilities(pcm_path, start, 500) for start in range(0, len(at_once), 500)]

        together = np.concatenate(spans)
        assert len(together) == len(at_once) == -(-round(40.01 * RATE) // FRAME_SAMPLES)
        assert np.mean((together > 0.5) == (at_once > 0.5)) > 0.995

    def test_a_span_does_not_depend_on_those_before_it(self, pcm_path: Path) -> None:
        first = media.speech_probabilities(str(pcm_path), 400, 300)
        media.speech_probabilities(str(pcm_path), 0, 100)
        assert media.speech_probabilities(str(pcm_path), 400, 300) == first

    def test_a_span_after_the_end_is_empty(self, pcm_path: Path) -> None:
        assert media.speech_probabilities(str(pcm_path), 2 * WARM_UP_FRAMES + 2000, 100) == b""


class TestProcesses:
    def test_importing_the_functions_loads_no_decoder(self) -> None:
        heavy = "{'av', 'torch', 'onnxruntime', 'silero_vad'}"
        code = f"import sys, workers.media.tasks; print(*({heavy} & set(sys.modules)))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == ""

    def test_errors_are_pickled_to_the_parent(self, child: ProcessPoolExecutor, tmp_path: Path) -> None:
        (tmp_path / "upload").write_bytes(BROKEN["png"][0]())
        (tmp_path / "pcm").touch()
        with pytest.raises(RecordingRefused, match="picture") as refused:
            child.submit(media.decode, "x", request(tmp_path / "upload", tmp_path / "pcm"), 1).result()
        assert refused.value.code == "not_audio"
        assert pickle.loads(pickle.dumps(refused.value)).message == refused.value.message

    def test_memory_is_limited(self, child: ProcessPoolExecutor, speech: Pcm, tmp_path: Path) -> None:
        child.submit(media.limit_memory, 256 << 20).result()
        with pytest.raises(MemoryError):
            child.submit(bytes, 1 << 30).result()

        (tmp_path / "upload").write_bytes(GOOD["mp4 video aac"].encode(speech))
        (tmp_path / "pcm").touch()
        step = child.submit(media.decode, "y", request(tmp_path / "upload", tmp_path / "pcm"), STEP).result()
        assert step.finished
        speaking = child.submit(media.speech_probabilities, str(tmp_path / "pcm"), 0, 1875).result()
        assert np.frombuffer(speaking, "<f4").max() > 0.5
