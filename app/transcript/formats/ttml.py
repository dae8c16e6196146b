"""Timed Text Markup Language (TTML1), of which IMSC and EBU-TT-D are profiles."""

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from app.transcript.cues import Cue
from app.transcript.formats.clock import timed_cues
from app.transcript.timeline import Transcript

# Without a region of its own, text would stand at the top left.
_DOCUMENT = """\
<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"
    xml:lang={language} xml:space="preserve">
  <head>
    <layout>
      <region xml:id="bottom" tts:origin="10% 10%" tts:extent="80% 80%"
              tts:displayAlign="after" tts:textAlign="center"/>
    </layout>
  </head>
  <body region="bottom">
    <div>
{paragraphs}\
    </div>
  </body>
</tt>
"""

# Whisper's code for Javanese is one that BCP 47, which `xml:lang` follows, has withdrawn.
_LANGUAGE_TAGS = {"jw": "jv"}


def write_ttml(transcript: Transcript, cues: Sequence[Cue]) -> str:
    """TTML, to be encoded as UTF-8; an empty division for no cues."""
    language = "en" if transcript.task == "translate" else transcript.language
    return _DOCUMENT.format(
        language=quoteattr(_LANGUAGE_TAGS.get(language, language)),
        paragraphs="".join(
            f'      <p begin="{_clock(start_ms)}" end="{_clock(end_ms)}">{_content(lines)}</p>\n'
            for start_ms, end_ms, lines in timed_cues(cues)
        ),
    )


def _content(lines: Sequence[str]) -> str:
    return "<br/>".join(map(escape, lines))


def _clock(milliseconds: int) -> str:
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}"
