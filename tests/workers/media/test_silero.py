"""The speech model, against silero-vad's own code."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.media_files import read_pcm
from workers.media.silero import SileroModel, framed

SPEECH = Path(__file__).parents[2] / "data" / "short01.flac"


@pytest.mark.parametrize("samples", [0, 1, 512, 513, 512 * 512, 512 * 512 + 1, 600 * 512 - 7])
def test_the_values_are_those_of_silero(samples: int) -> None:
    from silero_vad import load_silero_vad  # imports torch: not while tests are collected

    audio = np.resize(read_pcm(SPEECH), samples)
    found, _ = SileroModel().probabilities(framed(audio))
    assert found.dtype == np.float32
    expected = load_silero_vad(sequence=True).audio_forward(audio.astype(np.float32) / 32768)
    np.testing.assert_array_equal(found, expected)


def test_finding_speech_does_not_load_torch(tmp_path: Path) -> None:
    pcm = tmp_path / "pcm"
    pcm.write_bytes(bytes(32_000))
    code = (
        "import sys\n"
        "from workers.media import tasks\n"
        "tasks.limit_memory(1 << 30)\n"
        f"assert len(tasks.speech_probabilities({str(pcm)!r}, 0, 100)) == 4 * 32\n"
        "assert 'onnxruntime' in sys.modules\n"
        "print(*({'torch', 'silero_vad'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
