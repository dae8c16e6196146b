"""The languages that Whisper knows, by ISO 639 code and lower-case English name."""

import tomllib
from pathlib import Path

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

LANGUAGES: dict[str, str] = _TABLES["names"]
_CODES_BY_NAME: dict[str, str] = {name: code for code, name in LANGUAGES.items()} | _TABLES["other_names"]


def language_code(value: str | None) -> str | None:
    """Whisper's code for `value`: a code, a name, or a locale such as `pt-BR`. None stays None.

    Raises ValueError for a language that Whisper does not know.
    """
    if value is None:
        return None
    wanted = value.strip().lower()
    for candidate in (wanted, wanted.replace("_", "-").split("-")[0]):
        if candidate in LANGUAGES:
            return candidate
        if candidate in _CODES_BY_NAME:
            return _CODES_BY_NAME[candidate]
    raise ValueError(
        f"{value!r} is not a language that Whisper knows; give an ISO 639-1 code such as 'en', "
        "or leave the field out to have it detected"
    )


def names_in_files(value: str) -> tuple[str, ...]:
    """What media files may call the language `value`: as it is given, its codes in ISO 639 and its name."""
    import langcodes  # takes a while, and few requests need it

    wanted = value.strip().lower()
    try:
        code = language_code(wanted) or wanted
    except ValueError:
        try:
            code = langcodes.standardize_tag(wanted, macro=True).partition("-")[0]
        except ValueError:
            return (wanted,)
    language = langcodes.get(language_tag(code))
    try:
        long = {language.to_alpha3("B"), language.to_alpha3("T")}  # German is `ger` or `deu`
    except LookupError:
        long = set()
    return tuple(dict.fromkeys((wanted, code, *sorted(long), language_name(code))))


def language_tag(code: str) -> str:
    """The tag of BCP 47 for one of Whisper's codes. That for Javanese is withdrawn there."""
    return {"jw": "jv"}.get(code, code)


def language_name(code: str) -> str:
    """The lower-case English name of a code."""
    return LANGUAGES.get(code, code)
