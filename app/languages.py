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

# ISO 639-2 codes, which media files use: the bibliographic one first where there are two. The last one of
# Norwegian is Bokmål's. Chinese has those of its varieties in ISO 639-3 that files name.
ISO_639_2: dict[str, tuple[str, ...]] = {
    "af": ("afr",), "am": ("amh",), "ar": ("ara",), "as": ("asm",), "az": ("aze",), "ba": ("bak",),
    "be": ("bel",), "bg": ("bul",), "bn": ("ben",), "bo": ("tib", "bod"), "br": ("bre",), "bs": ("bos",),
    "ca": ("cat",), "cs": ("cze", "ces"), "cy": ("wel", "cym"), "da": ("dan",), "de": ("ger", "deu"),
    "el": ("gre", "ell"), "en": ("eng",), "es": ("spa",), "et": ("est",), "eu": ("baq", "eus"),
    "fa": ("per", "fas"), "fi": ("fin",), "fo": ("fao",), "fr": ("fre", "fra"), "gl": ("glg",),
    "gu": ("guj",), "ha": ("hau",), "haw": ("haw",), "he": ("heb",), "hi": ("hin",), "hr": ("hrv", "scr"),
    "ht": ("hat",), "hu": ("hun",), "hy": ("arm", "hye"), "id": ("ind",), "is": ("ice", "isl"),
    "it": ("ita",), "ja": ("jpn",), "jw": ("jav",), "ka": ("geo", "kat"), "kk": ("kaz",), "km": ("khm",),
    "kn": ("kan",), "ko": ("kor",), "la": ("lat",), "lb": ("ltz",), "ln": ("lin",), "lo": ("lao",),
    "lt": ("lit",), "lv": ("lav",), "mg": ("mlg",), "mi": ("mao", "mri"), "mk": ("mac", "mkd"),
    "ml": ("mal",), "mn": ("mon",), "mr": ("mar",), "ms": ("may", "msa"), "mt": ("mlt",),
    "my": ("bur", "mya"), "ne": ("nep",), "nl": ("dut", "nld"), "nn": ("nno",), "no": ("nor", "nob"),
    "oc": ("oci",), "pa": ("pan",), "pl": ("pol",), "ps": ("pus",), "pt": ("por",), "ro": ("rum", "ron"),
    "ru": ("rus",), "sa": ("san",), "sd": ("snd",), "si": ("sin",), "sk": ("slo", "slk"), "sl": ("slv",),
    "sn": ("sna",), "so": ("som",), "sq": ("alb", "sqi"), "sr": ("srp", "scc"), "su": ("sun",),
    "sv": ("swe",), "sw": ("swa",), "ta": ("tam",), "te": ("tel",), "tg": ("tgk",), "th": ("tha",),
    "tk": ("tuk",), "tl": ("tgl", "fil"), "tr": ("tur",), "tt": ("tat",), "uk": ("ukr",), "ur": ("urd",),
    "uz": ("uzb",), "vi": ("vie",), "yi": ("yid",), "yo": ("yor",), "yue": ("yue",),
    "zh": ("chi", "zho", "cmn"),
}  # fmt: skip

_CODES_BY_NAME = {name: code for code, name in LANGUAGES.items()} | {
    "burmese": "my", "castilian": "es", "flemish": "nl", "haitian": "ht", "javanese": "jw",
    "letzeburgesch": "lb", "mandarin": "zh", "moldavian": "ro", "moldovan": "ro", "panjabi": "pa",
    "pushto": "ps", "sinhalese": "si", "valencian": "ca", "jv": "jw", "nb": "no", "iw": "he",
} | {long: code for code, names in ISO_639_2.items() for long in names}  # fmt: skip


def language_code(value: str | None) -> str | None:
    """Whisper's code for `value`: an ISO 639 code, a name, or a locale such as `pt-BR`. None stays None.

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
    """What media files may call a language: its codes in ISO 639, first as it is asked for.

    Languages that Whisper does not know have the one code that is asked for.
    """
    wanted = value.strip().lower()
    try:
        code = language_code(wanted)
    except ValueError:
        return (wanted,)
    return tuple(dict.fromkeys((wanted, code or "", *ISO_639_2[code or ""], LANGUAGES[code or ""])))


def language_name(code: str) -> str:
    """The lower-case English name of a code."""
    return LANGUAGES.get(code, code)
