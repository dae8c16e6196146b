"""Timed Text Markup Language, in the text profile of IMSC 1.1, which players of plain TTML read, too."""

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from app.common.languages import language_tag
from app.transcript.cues.timing import Cue
from app.transcript.formats.common import FileCue, FileStyle, clock, timed_cues
from app.transcript.text.direction import is_ambiguous
from app.transcript.timeline import Transcript

# Without a region, players would show the text at the top left.
_BEGINNING, _END = Path(__file__).with_suffix(".xml").read_text("utf-8").split("{paragraphs}\n")

_NAMESPACE = '\n    xmlns:ttm="http://www.w3.org/ns/ttml#metadata"'
_AGENT = """\
      <ttm:agent type="person" xml:id="{agent}"><ttm:name type="full">{name}</ttm:name></ttm:agent>
"""


def write_ttml(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[str]:
    """TTML, which the caller encodes as UTF-8; an empty division if there are no cues.

    Speakers are agents: a paragraph names its agents, and so does each line if they are two.
    """
    language = transcript.text_language
    agents: dict[str, str] = {}  # by the name of the speaker
    paragraphs = []
    for cue in ttml_cues(cues, style):
        speakers = [name and agents.setdefault(name, f"speaker{len(agents) + 1}") for name in cue.speakers]
        spoken = list(dict.fromkeys(filter(None, speakers)))
        lines = [_content(line, cue.language or language) for line in cue.lines]
        if len(set(speakers)) > 1:
            lines = [f"<span{_agent(by)}>{line}</span>" for line, by in zip(lines, speakers, strict=True)]
        times = f'begin="{clock(cue.start)}" end="{clock(cue.end)}"'
        if cue.language not in (None, language):
            times += f' xml:lang="{escape(language_tag(cue.language))}"'
        paragraphs.append(f"      <p {times}{_agent(' '.join(spoken))}>{'<br/>'.join(lines)}</p>\n")
    listed = "".join(
        _AGENT.format(agent=agent, name=escape(name, quote=False)) for name, agent in agents.items()
    )
    yield _BEGINNING.format(
        language=escape(language_tag(language)),
        namespace=_NAMESPACE if agents else "",
        agents=f"\n    <metadata>\n{listed}    </metadata>" if agents else "",
    )
    yield from paragraphs
    yield _END


def ttml_cues(cues: Iterable[Cue], style: FileStyle) -> Iterator[FileCue]:
    return timed_cues(cues)


def _agent(agents: str) -> str:
    return f' ttm:agent="{agents}"' if agents else ""


def _content(line: str, language: str) -> str:
    text = escape(line, quote=False)
    is_marked = is_ambiguous(line, language)
    return f'<span tts:direction="rtl" tts:unicodeBidi="embed">{text}</span>' if is_marked else text
