"""The recording of a live stream on disk: a WAV file that is complete after each write."""

from pathlib import Path

import av
import pytest

from app.common.errors import DiskFull
from app.intake.disk import DiskSpace, Reservation
from app.intake.growing_wav import HEADER_BYTES, GrowingWav, stored_sound
from workers.messages import ALAW, PCM_16K, PCM_24K, ULAW, Encoding


@pytest.mark.parametrize(
    ("encoding", "codec"),
    [(PCM_16K, "pcm_s16le"), (PCM_24K, "pcm_s16le"), (ULAW, "pcm_mulaw"), (ALAW, "pcm_alaw")],
)
def test_any_program_reads_what_came_so_far(tmp_path: Path, encoding: Encoding, codec: str) -> None:
    path = tmp_path / "a"
    file = GrowingWav(path, encoding, Reservation(DiskSpace(tmp_path)), 1 << 20)
    for seconds in (1, 2):
        file.write(bytes(range(250)) * (encoding.bytes_per_second // 250))
        assert path.stat().st_size == file.size
        with av.open(str(path)) as container:
            [stream] = container.streams.audio
            samples = sum(frame.samples for frame in container.decode(stream))
        assert (stream.codec_context.name, stream.rate) == (codec, encoding.rate)
        assert samples == seconds * encoding.rate
    assert path.stat().st_mode & 0o777 == 0o600
    file.close()


@pytest.mark.parametrize("encoding", [PCM_24K, ULAW, ALAW])
def test_it_goes_on_after_what_its_header_says(tmp_path: Path, encoding: Encoding) -> None:
    path, rest = tmp_path / "a", (Reservation(DiskSpace(tmp_path)), 1 << 20)
    whole = GrowingWav(path, encoding, *rest)
    whole.write(b"ab" * 400)
    whole.close()
    expected = path.read_bytes()
    path.unlink()
    file = GrowingWav(path, encoding, *rest)
    file.write(b"ab" * 100)
    file.close()
    with path.open("ab") as unsaid:
        unsaid.write(b"x" * 50)
    assert stored_sound(path) == (encoding, 200)
    file = GrowingWav(path, encoding, *rest, HEADER_BYTES + 200)
    file.write(b"ab" * 300)
    file.close()
    assert path.read_bytes() == expected


def test_a_full_disk_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = GrowingWav(tmp_path / "a", PCM_16K, Reservation(DiskSpace(tmp_path)), 1 << 20)
    file.write(bytes(3200))
    before = (tmp_path / "a").read_bytes()
    monkeypatch.setattr(DiskSpace, "free", lambda self: 100)
    with pytest.raises(DiskFull):
        file.write(bytes(3200))
    file.close()
    assert (tmp_path / "a").read_bytes() == before
