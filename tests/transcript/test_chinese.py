import pytest
from transcript_cases import segment

from app.transcript.text.chinese import Script, convert_segments, convert_text


@pytest.mark.parametrize(
    ("script", "text", "converted"),
    [
        ("traditional", "头发和发展, OK", "頭髮和發展, OK"),
        ("traditional", "頭髮和發展", "頭髮和發展"),
        ("simplified", "頭髮和發展", "头发和发展"),
        ("keep", "頭髮和发展", "頭髮和发展"),
        ("traditional", "Just English.", "Just English."),
    ],
)
def test_text(script: Script, text: str, converted: str) -> None:
    assert convert_text(text, script) == converted


def test_words_are_converted_as_a_phrase() -> None:
    original = segment(0, 3, "头发发展", ("头", 0, 1), ("发", 1, 2), ("发展", 2, 3))
    assert convert_segments([original], "traditional", "zh") == (
        segment(0, 3, "頭髮發展", ("頭", 0, 1), ("髮", 1, 2), ("發展", 2, 3)),
    )
    assert convert_segments([original], "keep", "zh") == (original,)
