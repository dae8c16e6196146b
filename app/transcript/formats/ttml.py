"""Timed Text Markup Language (TTML1), of which IMSC and EBU-TT-D are profiles."""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from app.transcript.cues import Cue
from app.transcript.formats.common import clock, timed_cues
from app.transcript.timeline import Transcript

# Without a region, players would show the text at the top left.
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

# `xml:lang` follows BCP 47, which has withdrawn Whisper's code for Javanese.
_LANGUAGE_TAGS = {"jw": "jv"}


def write_ttml(transcript: Transcript, cues: Iterable[Cue]) -> Iterator[str]:
    """TTML, which the caller encodes as UTF-8; an empty division if there are no cues."""
    language = transcript.text_language
    yield _BEGINNING.format(language=quoteattr(_LANGUAGE_TAGS.get(language, language)))
    for start, end, lines in timed_cues(cues):
        text = "<br/>".join(map(escape, lines))
        yield f'      <p begin="{clock(start)}" end="{clock(end)}">{text}</p>\n'
    yield _END
