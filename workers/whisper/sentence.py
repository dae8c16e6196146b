"""A bundled sentence, which shows whether a device computes."""

from pathlib import Path

from workers.messages import DecodingOptions, Window

FOLDER = Path(__file__).parents[1] / "demo_model"


def sentence(decoding: DecodingOptions) -> Window:
    """The sentence as a window to decode."""
    from faster_whisper import decode_audio

    samples = decode_audio(str(FOLDER / "sample.flac"))
    return Window((samples * 32767).astype("<i2").tobytes(), ((0, len(samples)),), decoding)
