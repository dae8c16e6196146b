"""Timed Text Markup Language (TTML1), of which IMSC and EBU-TT-D are profiles."""

from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from app.transcript.cues import Cue
from app.transcript.formats.clock import clock, timed_cues
from app.transcript.timeline import Transcript

# Without a region of its own, text would stand at the top left.
_BEGINNING = """\
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
"""
_END = """\
    </div>
  </body>
</tt>
"""

# Whisper's code for Javanese is one that BCP 47, which `xml:lang` follows, has withdrawn.
_LANGUAGE_TAGS = {"jw": "jv"}


def write_ttml(transcript: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """TTML, to be encoded as UTF-8; an empty division for no cues."""
    language = "en" if transcript.task == "translate" else transcript.language
    yield _BEGINNING.format(language=quoteattr(_LANGUAGE_TAGS.get(language, language)))
    for start_ms, end_ms, lines in timed_cues(cues):
        yield f'      <p begin="{clock(start_ms)}" end="{clock(end_ms)}">{_content(lines)}</p>\n'
    yield _END


def _content(lines: Sequence[str]) -> str:
    return "<br/>".join(map(escape, lines))
