"""DOCX (Office Open XML): a title, and a paragraph for what each speaker says in a row.

python-docx makes the document with its styles, and no paragraphs: to add one, it searches all before it, and
ten hours of conversation would take half a minute.
"""

from collections.abc import Iterable, Iterator
from html import escape
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from docx.oxml.ns import qn
from docx.shared import Pt, RGBColor

from app.common.languages import language_tag
from app.transcript.cues.timing import Cue
from app.transcript.formats.common import FileStyle
from app.transcript.paragraphs import paragraphs_of
from app.transcript.text.direction import is_right_to_left
from app.transcript.timeline import Transcript

_BODY = "word/document.xml"
_BODY_END = b"<w:sectPr"  # the page's size: the last element of the body
_SCRIPTS = ("w:val", "w:eastAsia", "w:bidi")  # attributes of `w:lang`: each has the same language
_TITLE, _SPEAKER, _TIME = "Title", "Speaker", "Time"  # styles, which readers can change


def write_docx(transcript: Transcript, cues: Iterable[Cue], style: FileStyle) -> Iterator[bytes]:
    """A document whose bytes depend on its content alone: it has no date."""
    file = BytesIO()
    with (
        ZipFile(_template(style.heading, language_tag(transcript.text_language))) as template,
        ZipFile(file, "w") as written,
    ):
        for entry in template.infolist():
            info = ZipInfo(entry.filename)
            info.compress_type = ZIP_DEFLATED
            content = template.read(entry)
            if entry.filename != _BODY:
                written.writestr(info, content)
                continue
            before, mark, after = content.partition(_BODY_END)
            with written.open(info, "w") as body:
                body.write(before)
                for paragraph in _paragraphs(transcript, style):
                    body.write(paragraph.encode())
                body.write(mark + after)
    yield file.getvalue()


def _template(title: str, language: str) -> BytesIO:
    """A document without text, with the styles of a transcript."""
    document = Document()
    properties = document.core_properties
    properties.title, properties.language = title[:255], language  # more is an error
    properties.author = properties.comments = ""
    for date in ("dcterms:created", "dcterms:modified"):
        for element in properties._element.findall(qn(date)):
            properties._element.remove(element)
    styles = document.styles
    for spelling in styles.element.iter(qn("w:lang")):
        for script in _SCRIPTS:
            spelling.set(qn(script), language)
    styles["Normal"].paragraph_format.space_after = Pt(8)
    styles.add_style(_SPEAKER, WD_STYLE_TYPE.CHARACTER).font.bold = True
    styles.add_style(_TIME, WD_STYLE_TYPE.CHARACTER).font.color.rgb = RGBColor(0x59, 0x59, 0x59)
    file = BytesIO()
    document.save(file)
    return file


def _paragraphs(transcript: Transcript, style: FileStyle) -> Iterator[str]:
    if heading := style.heading:
        is_rtl = is_right_to_left(transcript.text_language)
        yield _paragraph([_run(heading, is_rtl=is_rtl)], _TITLE, is_rtl=is_rtl)
    for number, paragraph in enumerate(paragraphs_of(transcript), start=1):
        is_rtl = is_right_to_left(paragraph.language)
        other = "" if paragraph.language == transcript.text_language else language_tag(paragraph.language)
        runs = []
        if lead := style.numeral(number) + style.time_of(paragraph.start):
            runs.append(_run(lead, _TIME))
        if name := style.name_of(paragraph.speaker):
            runs.append(_run(f"{name} ", _SPEAKER, is_rtl=is_rtl))
        runs.append(_run(paragraph.text, is_rtl=is_rtl, language=other))
        yield _paragraph(runs, is_rtl=is_rtl)


def _paragraph(runs: Iterable[str], style: str = "", *, is_rtl: bool) -> str:
    properties = f'<w:pStyle w:val="{style}"/>' if style else ""
    properties += "<w:bidi/>" if is_rtl else ""
    return f"<w:p>{properties and f'<w:pPr>{properties}</w:pPr>'}{''.join(runs)}</w:p>"


def _run(text: str, style: str = "", *, is_rtl: bool = False, language: str = "") -> str:
    """`language`: a tag of BCP 47, if it is not that of the styles."""
    properties = f'<w:rStyle w:val="{style}"/>' if style else ""
    properties += "<w:rtl/>" if is_rtl else ""
    spelling = " ".join(f'{script}="{language}"' for script in _SCRIPTS)
    properties += f"<w:lang {spelling}/>" if language else ""
    shown = f'<w:t xml:space="preserve">{escape(text, quote=False)}</w:t>'
    return f"<w:r>{properties and f'<w:rPr>{properties}</w:rPr>'}{shown}</w:r>"
