"""What the mix of several channels keeps, from files as people have them."""

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import soundfile

from tests.media_files import RATE, Pcm, read_pcm
from workers.media import mixer
from workers.media.decode import decoded_pcm
from workers.media.findings import Findings
from workers.media.mixer import PcmFormat

SPEECH = read_pcm(Path(__file__).parents[2] / "data" / "short00.flac")[: RATE * 3] / 32768
SECOND = RATE
Sound = npt.NDArray[np.float64]


def decode(
    folder: Path, channels: list[Sound] | Sound, rate: int = RATE, start_s: float = 0.0, **how: str
) -> Pcm:
    """The mix of channels, from a WAV file or another."""
    path = folder / "upload"
    file = io.BytesIO()
    soundfile.write(file, np.stack(list(channels), 1), rate, **{"format": "WAV", "subtype": "PCM_16"} | how)
    path.write_bytes(file.getvalue())
    findings = Findings()
    pcm = b"".join(decoded_pcm(path, findings, start_s=start_s))
    return np.frombuffer(pcm, "<i2")


def noise(seed: int, level: float, seconds: float = 3) -> Sound:
    return np.random.default_rng(seed).normal(scale=level, size=round(seconds * RATE))


def level_and_likeness(mix: Pcm, sound: Sound) -> tuple[float, float]:
    """How loud a sound is in the mix, in dB of its own level, and the correlation of both."""
    mixed = mix[: len(sound)] / 32768
    product = mixed @ sound
    level = 20 * np.log10(abs(product) / (sound @ sound) + 1e-9)
    return level, abs(product) / np.sqrt((sound @ sound) * (mixed @ mixed) + 1e-9)


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize(("delay", "level_db"), [(0, 0), (1, 0), (0, -3), (0, 3)])
def test_a_channel_upside_down_does_not_cancel_the_other(
    tmp_path: Path, subtype: str, delay: int, level_db: float
) -> None:
    other = -np.roll(SPEECH, delay) * 10 ** (level_db / 20)
    mix = decode(tmp_path, [SPEECH * 0.7, other * 0.7], subtype=subtype)
    level, likeness = level_and_likeness(mix, SPEECH * 0.7)
    assert likeness > (0.95 if subtype == "PCM_U8" else 0.99)
    assert level == pytest.approx(max(0, level_db), abs=0.5)


@pytest.mark.parametrize("start_s", [3.0, 3.2, 3.4])
@pytest.mark.parametrize("end_s", [6.0, 6.4, 6.7])
def test_a_channel_that_is_upside_down_for_a_while(tmp_path: Path, start_s: float, end_s: float) -> None:
    """Where that begins and ends, less than a quarter of a second may be lost, or what is quiet."""
    talk = np.tile(SPEECH, 3)
    other = talk.copy()
    other[round(start_s * RATE) : round(end_s * RATE)] *= -1
    mix = decode(tmp_path, [talk, other])
    usual = np.rint(talk * 32768)
    lost = mix - usual
    assert (lost**2).sum() < 0.005 * (usual**2).sum()
    assert np.abs(lost[3 * SECOND + RATE // 2 : 6 * SECOND - RATE // 4]).max() <= 1
    assert not lost[: 3 * SECOND - RATE // 4].any()
    assert not lost[7 * SECOND + RATE // 2 :].any()


def test_the_mix_changes_without_a_click(tmp_path: Path) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 200 / RATE * np.arange(4 * SECOND))
    channels = np.zeros((6, 4 * SECOND))
    channels[:, : 2 * SECOND] = noise(1, 0.001, 2)
    channels[2] += tone
    channels[:, 2 * SECOND :] = tone[2 * SECOND :]
    channels[4, 3 * SECOND :] = 0
    mix = decode(tmp_path, channels).astype(float)
    steps = np.abs(np.diff(mix)).max()
    assert steps < 1.5 * np.abs(np.diff(tone * 32768)).max()


@pytest.mark.parametrize("music_db", [-90, -20, -10])
@pytest.mark.parametrize(("layout", "channels"), [("5.1", 6), ("7.1", 8)])
def test_the_centre_of_surround_is_about_as_loud_in_the_mix(
    tmp_path: Path, layout: str, channels: int, music_db: float
) -> None:
    speech = SPEECH / SPEECH.std() * 10 ** (-25 / 20)
    surround = [noise(place, speech.std() * 10 ** (music_db / 20)) for place in range(channels)]
    surround[2] = speech
    surround[3] = 0.3 * np.sin(2 * np.pi * 40 / RATE * np.arange(len(speech)))  # FLAC means the bass by this
    level, likeness = level_and_likeness(decode(tmp_path, surround, format="FLAC"), speech)
    assert level > -4
    assert likeness > 0.95


def test_speech_on_the_channel_that_the_file_calls_the_bass_is_kept(tmp_path: Path) -> None:
    channels = [SPEECH * 0 for _ in range(6)]
    channels[3] = SPEECH
    assert level_and_likeness(decode(tmp_path, channels, format="FLAC"), SPEECH) == pytest.approx(
        (0, 1), abs=0.1
    )


@pytest.mark.parametrize("place", [0, 7, 15])
def test_a_voice_on_one_of_many_channels_keeps_its_level(tmp_path: Path, place: int) -> None:
    channels = [noise(seed, 1e-3) for seed in range(16)]
    channels[place] = channels[place] + SPEECH
    level, likeness = level_and_likeness(decode(tmp_path, channels), SPEECH)
    assert level == pytest.approx(0, abs=0.5)
    assert likeness > 0.99


@pytest.mark.parametrize("hertz", [35, 50])
@pytest.mark.parametrize("channels", [6, 8])
def test_a_voice_is_louder_in_the_mix_than_a_hum(tmp_path: Path, channels: int, hertz: float) -> None:
    """Nothing in the file says that one of the channels has the bass, or that nothing is plugged in there."""
    surround = [noise(seed, 1e-3) for seed in range(channels)]
    surround[2] = voice = SPEECH / 2
    surround[3] = 0.4 * np.sin(2 * np.pi * hertz / RATE * np.arange(len(voice)))
    level, _ = level_and_likeness(decode(tmp_path, surround, subtype="FLOAT"), voice)
    assert level > -4


@pytest.mark.parametrize("degrees", range(0, 360, 45))
def test_the_mix_of_ambisonics_is_the_whole_sound(tmp_path: Path, degrees: float) -> None:
    azimuth, height = np.radians(degrees), np.radians(20)
    directions = (1, np.sin(azimuth) * np.cos(height), np.sin(height), np.cos(azimuth) * np.cos(height))
    channels = [SPEECH * part + noise(seed, 1e-4) for seed, part in enumerate(directions)]
    mix = decode(tmp_path, channels)
    assert np.abs(mix - np.rint(channels[0] * 32768)).max() <= 1


@pytest.mark.parametrize("rate", [RATE, 44_100])
@pytest.mark.parametrize(
    "channels",
    [
        pytest.param([SPEECH, SPEECH], id="mono in stereo"),
        pytest.param([SPEECH, SPEECH + noise(1, 0.01)], id="mono with noise"),
        pytest.param([SPEECH, SPEECH[::-1]], id="two talkers"),
        pytest.param([SPEECH, SPEECH * 0], id="one side"),
        pytest.param([noise(1, 0.1), noise(2, 0.1)], id="wide sound"),
        pytest.param([noise(seed, 0.1) * (1 + seed / 10) for seed in range(6)], id="ambience"),
        pytest.param([SPEECH + noise(seed, 0.05) for seed in range(6)], id="the same in surround"),
        pytest.param([SPEECH * 0 + 1e-5] * 2, id="silence"),
    ],
)
def test_the_usual_mix_is_the_mean(
    tmp_path: Path, rate: int, channels: list[Sound], monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = decode(tmp_path, channels, rate)
    monkeypatch.setattr(mixer, "_balance", lambda *_: None)
    assert np.array_equal(mix, decode(tmp_path, channels, rate))


def test_a_part_has_the_mix_of_the_whole(tmp_path: Path) -> None:
    """Its seconds are those of the recording, wherever it begins."""
    talk = np.tile(SPEECH, 4)
    other = talk.copy()
    other[5 * SECOND : 10 * SECOND] *= -0.8
    whole = decode(tmp_path, [talk, other], format="FLAC")
    for start_s in (4.3, 6.0, 7.7, 9.5):
        part = decode(tmp_path, [talk, other], start_s=start_s, format="FLAC")
        wanted = round((12 - start_s) * RATE)
        assert len(part) >= wanted
        assert np.array_equal(part[-wanted:], whole[-wanted:]), start_s


def test_nothing_clips_where_the_mix_differs(tmp_path: Path) -> None:
    full = np.sign(np.sin(2 * np.pi * 100 / RATE * np.arange(2 * SECOND))) * 32767 / 32768
    for channels in ([full, -full], [full, *[full * 0] * 5], [full, *[full * 0.3] * 5]):
        for subtype in ("PCM_16", "PCM_24"):
            mix = decode(tmp_path, channels, subtype=subtype).astype(float)
            assert np.abs(mix).max() <= 32767
            assert np.corrcoef(mix, full)[0, 1] > 0.99


def test_samples_that_are_no_numbers_affect_only_themselves(tmp_path: Path) -> None:
    talk = np.tile(SPEECH, 2)
    channels = [talk.copy(), -talk, talk * 0]
    for number in (2, 3):
        for channel, value in enumerate([np.nan, np.inf, 1e30][:number]):
            channels[channel][SECOND + 1000 + channel] = value
        mix = decode(tmp_path, channels[:number], subtype="FLOAT")
        assert level_and_likeness(mix[2 * SECOND :], talk[2 * SECOND :]) == pytest.approx((0, 1), abs=0.1)


def test_a_copy_for_people_keeps_both_channels_of_stereo(tmp_path: Path) -> None:
    path = tmp_path / "upload"
    soundfile.write(path, np.stack([SPEECH, -SPEECH], 1), RATE, format="WAV", subtype="PCM_16")
    pcm = np.frombuffer(b"".join(decoded_pcm(path, Findings(), PcmFormat(RATE, 2))), "<i2").reshape(-1, 2)
    assert np.array_equal(pcm[:, 0], np.rint(SPEECH * 32768))
    assert np.array_equal(pcm[:, 1], np.rint(-SPEECH * 32768))
