"""What a clip is expected to cost."""

from app.engines.clip_request import expected_tokens
from workers.messages import SAMPLE_RATE


def test_tokens_come_from_speech_and_not_from_silence() -> None:
    spans = ((0, 5 * SAMPLE_RATE), (20 * SAMPLE_RATE, 25 * SAMPLE_RATE))
    assert expected_tokens(spans) == 33
