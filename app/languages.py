"""The languages that Whisper knows, by ISO 639 code and lower-case English name."""

LANGUAGES: dict[str, str] = {
    "af": "afrikaans", "am": "amharic", "ar": "arabic", "as": "assamese", "az": "azerbaijani",
    "ba": "bashkir", "be": "belarusian", "bg": "bulgarian", "bn": "bengali", "bo": "tibetan",
    "br": "breton", "bs": "bosnian", "ca": "catalan", "cs": "czech", "cy": "welsh", "da": "danish",
    "de": "german", "el": "greek", "en": "english", "es": "spanish", "et": "estonian", "eu": "basque",
    "fa": "persian", "fi": "finnish", "fo": "faroese", "fr": "french", "gl": "galician",
    "gu": "gujarati", "ha": "hausa", "haw": "hawaiian", "he": "hebrew", "hi": "hindi",
    "hr": "croatian", "ht": "haitian creole", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "is": "icelandic", "it": "italian", "ja": "japanese", "jw": "javanese",
    "ka": "georgian", "kk": "kazakh", "km": "khmer", "kn": "kannada", "ko": "korean", "la": "latin",
    "lb": "luxembourgish", "ln": "lingala", "lo": "lao", "lt": "lithuanian", "lv": "latvian",
    "mg": "malagasy", "mi": "maori", "mk": "macedonian", "ml": "malayalam", "mn": "mongolian",
    "mr": "marathi", "ms": "malay", "mt": "maltese", "my": "myanmar", "ne": "nepali", "nl": "dutch",
    "nn": "nynorsk", "no": "norwegian", "oc": "occitan", "pa": "punjabi", "pl": "polish",
    "ps": "pashto", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sa": "sanskrit",
    "sd": "sindhi", "si": "sinhala", "sk": "slovak", "sl": "slovenian", "sn": "shona",
    "so": "somali", "sq": "albanian", "sr": "serbian", "su": "sundanese", "sv": "swedish",
    "sw": "swahili", "ta": "tamil", "te": "telugu", "tg": "tajik", "th": "thai", "tk": "turkmen",
    "tl": "tagalog", "tr": "turkish", "tt": "tatar", "uk": "ukrainian", "ur": "urdu", "uz": "uzbek",
    "vi": "vietnamese", "yi": "yiddish", "yo": "yoruba", "yue": "cantonese", "zh": "chinese",
}  # fmt: skip

_CODES_BY_NAME = {name: code for code, name in LANGUAGES.items()} | {
    "burmese": "my", "castilian": "es", "fil": "tl", "filipino": "tl", "flemish": "nl", "haitian": "ht",
    "javanese": "jw",
    "letzeburgesch": "lb", "mandarin": "zh", "moldavian": "ro", "moldovan": "ro", "panjabi": "pa",
    "pushto": "ps", "sinhalese": "si", "valencian": "ca", "jv": "jw", "nb": "no", "iw": "he",
}  # fmt: skip


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
    language = langcodes.get({"jw": "jv"}.get(code, code))
    try:
        long = {language.to_alpha3("B"), language.to_alpha3("T")}  # German is `ger` or `deu`
    except LookupError:
        long = set()
    return tuple(dict.fromkeys((wanted, code, *sorted(long), language_name(code))))


def language_name(code: str) -> str:
    """The lower-case English name of a code."""
    return LANGUAGES.get(code, code)
