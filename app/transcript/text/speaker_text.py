"""How text says who speaks: names before what people say, and dashes where two speak in one cue. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from app.transcript.text.direction import embed_name
from app.transcript.text.scripts import width

# Names stand on one line, and do not change the direction of the text around them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_CUT = "…"

# What begins the two lines of a cue in which two people speak, by ISO 639-1 code. "Dual Speakers" in the
# Netflix Timed Text Style Guide of each language (partnerhelp.netflixstudios.com): a hyphen on both lines or
# on the second one, with or without a space.
_BOTH = ("-", "-")
_DASHES: Mapping[str, tuple[str, str]] = {
    code: dash
    for codes, dash in {
        "ar cs es fr hu id it ko ms pl pt ro ru sk th vi": ("- ", "- "),
        "fi he nl sr": ("", "-"),
        "bg": ("", "- "),
    }.items()
    for code in codes.split()
}


@dataclass(frozen=True, slots=True)
class SpeakerPrefix:
    """Text before what somebody says. It counts as a part of the line.

    `SpeakerPrefix("[{name}]: ", {"S1": "SPEAKER_00"}, is_repeated=True)` writes as whisperX does.
    """

    template: str = "{name}: "
    names: Mapping[str, str] = field(default_factory=dict)  # instead of labels; others stay as they are
    is_repeated: bool = False  # in every cue or line of text, unshortened; else where the speaker changes

    def of(self, speaker: str | None, columns: int | None = None, language: str | None = None) -> str:
        """The text before words of the speaker; empty if nobody knows who speaks.

        A name that makes it wider than `columns` is shortened, unless it is for programs: `is_repeated`. A
        right-to-left name is embedded if the language (ISO 639-1 code) is written the other way.
        """
        name = "" if speaker is None else shown_name(self.names.get(speaker, speaker))
        if not name:
            return ""
        if columns is not None and not self.is_repeated:
            name = _shortened(name, columns - width(self.template.replace("{name}", "")))
        if language is not None:
            name = embed_name(name, language)
        return self.template.replace("{name}", name)


def shown_name(speaker: str) -> str:
    """The name on one line, without characters that nobody sees; empty if it has no others."""
    return " ".join(_UNSAFE.sub(" ", speaker).split())


def dashes(language: str) -> tuple[str, str]:
    """What begins the first and the second line of a cue in which two people speak."""
    return _DASHES.get(language, _BOTH)


def _shortened(name: str, columns: int) -> str:
    if width(name) <= columns:
        return name
    while width(name) > max(columns - width(_CUT), 1):
        name = name[:-1]
    return name.rstrip() + _CUT
