"""Timed Text Markup Language, in the text profile of IMSC 1.1, which players of plain TTML read, too."""

from collections.abc import Iterable, Iterator
from xml.sax.saxutils import escape, quoteattr

from app.transcript.cues import Cue
from app.transcript.formats.common import FileStyle, clock, timed_cues
from app.transcript.formats.direction import is_ambiguous
from app.transcript.timeline import Transcript

# Without a region, players would show the text at the top left.
_BEGINNING = """\
<?xml version="1.0" encoding="UTF-8"?>
<tt xmlns="http://www.w3.org/ns/ttml" xmlns:ttp="http://www.w3.org/ns/ttml#parameter"
    xmlns:tts="http://www.w3.org/ns/ttml#styling"
    ttp:contentProfiles="http://www.w3.org/ns/ttml/profile/imsc1.1/text"
    ttp:timeBase="media" ttp:cellResolution="32 15" xml:lang={language} xml:space="preserve">
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


def write_ttml(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """TTML, which the caller encodes as UTF-8; an empty division if there are no cues."""
    language = transcript.text_language
    yield _BEGINNING.format(language=quoteattr(_LANGUAGE_TAGS.get(language, language)))
    for cue in timed_cues(cues):
        text = "<br/>".join(_content(line, transcript.text_language) for line in cue.lines)
        yield f'      <p begin="{clock(cue.start)}" end="{clock(cue.end)}">{text}</p>\n'
    yield _END


def _content(line: str, language: str) -> str:
    if is_ambiguous(line, language):
        return f'<span tts:direction="rtl" tts:unicodeBidi="embed">{escape(line)}</span>'
    return escape(line)
