"""The languages that Whisper knows, by ISO 639 code and lower-case English name."""

import tomllib
from functools import cache
from pathlib import Path

from app.common.suggestions import nearest_name

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

LANGUAGES: dict[str, str] = _TABLES["names"]
MAX_SHOWN_CHARS = 40  # of what is no language
_CODE_CHARS = 3  # of the codes of ISO 639, at most
_VARIETIES: dict[str, list[str]] = _TABLES["varieties"]
_NEAR = {language: tuple(near) for near in _TABLES["near"]["groups"] for language in near}
_CODES_BY_NAME: dict[str, str] = {name: code for code, name in LANGUAGES.items()} | _TABLES["other_names"]


def language_code(value: str | None) -> str | None:
    """Whisper's code for `value`: a code, a name, or a locale such as `pt-BR`. None stays None.

    Raises ValueError, with the nearest code, for a language that Whisper does not know.
    """
    if value is None:
        return None
    code = known_code(value)
    if code is None:
        shown = value[:MAX_SHOWN_CHARS]
        near = code_in_files(shown) or known_code(nearest_name(shown, _CODES_BY_NAME) or "")
        raise ValueError(
            f"{shown!r} is not a language that Whisper knows; "
            + (f"did you mean {near!r}? Give" if near else "give")
            + " an ISO 639-1 code such as 'en', or leave the field out to have it detected"
        )
    return code


def known_code(value: str) -> str | None:
    """As `language_code`, and None for a language that Whisper does not know."""
    wanted = value.strip().lower()
    for candidate in (wanted, wanted.replace("_", "-").split("-")[0]):
        if candidate in LANGUAGES:
            return candidate
        if candidate in _CODES_BY_NAME:
            return _CODES_BY_NAME[candidate]
    return None


def near_languages(code: str) -> tuple[str, ...]:
    """The languages that Whisper may confuse with this one, itself among them."""
    return _NEAR.get(code, (code,))


def code_in_files(value: str) -> str | None:
    """As `known_code`, also for the other codes of ISO 639, such as `deu` and `ger`."""
    return known_code(value) or known_code(_standard_code(value.strip()))


def names_in_files(value: str) -> tuple[str, ...]:
    """What media files may call the language `value`: as it is given, its codes in ISO 639 and its name.

    `zh-yue` for Chinese: what is called `yue` does if there is nothing else.
    """
    wanted = value.strip().lower()
    code = code_in_files(wanted) or _standard_code(wanted)
    if not code:
        return (wanted,)
    names = dict.fromkeys((wanted, code, *_other_codes().get(code, ()), language_name(code)))
    return (*names, *(f"{code}-{variety}" for variety in _VARIETIES.get(code, ())))


@cache
def _other_codes() -> dict[str, list[str]]:
    """By code: the other ones of ISO 639 for the same language. German is `ger` or `deu`."""
    from langcodes import data_dicts as known

    codes: dict[str, list[str]] = {}
    tags = (known.LANGUAGE_REPLACEMENTS, known.NORMALIZED_MACROLANGUAGES, LANGUAGES, _CODES_BY_NAME)
    for tag in sorted(set().union(*tags)):
        if tag.isascii() and tag.isalpha() and len(tag) <= _CODE_CHARS:
            codes.setdefault(code_in_files(tag) or _standard_code(tag), []).append(tag)
    return codes


def _standard_code(tag: str) -> str:
    """The shortest code of ISO 639 for a tag's language; that of a variety is its language's; "": none."""
    import langcodes  # takes a while, and few requests need it

    try:
        return langcodes.standardize_tag(tag, macro=True).partition("-")[0]
    except ValueError:
        return ""


def language_tag(code: str) -> str:
    """The tag of BCP 47 for one of Whisper's codes. That for Javanese is withdrawn there."""
    return {"jw": "jv"}.get(code, code)


def language_name(code: str) -> str:
    """The lower-case English name of a code."""
    return LANGUAGES.get(code, code)
