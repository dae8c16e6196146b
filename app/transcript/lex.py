from functools import cache
from app.transcript import function_words as f


@cache
def connectives(l):
    return frozenset(f._CONNECTIVES.get(l, "").split())


@cache
def leaning_forward(l):
    return f.FUNCTION_WORDS.get(l, frozenset())


@cache
def leaning_back(l):
    return frozenset()


@cache
def months(l):
    return frozenset()


@cache
def nouns_before_numbers(l):
    return frozenset()


@cache
def units_of_measure(l):
    return frozenset()


@cache
def titles(l):
    return frozenset("mr mrs ms dr prof st mme mlle m".split())


@cache
def never_ends_sentence(l):
    return frozenset(
        {
            "mr.",
            "mrs.",
            "ms.",
            "dr.",
            "prof.",
            "st.",
            "vs.",
            "sr.",
            "sra.",
            "srta.",
            "hr.",
            "nr.",
            "bzw.",
            "mme.",
            "mlle.",
            "sig.",
            "dott.",
            "dhr.",
            "mevr.",
            "approx.",
        }
    )


def writes_ordinals_with_dot(l):
    return l in {"de", "da", "no", "fi", "cs", "sk", "hu", "pl", "tr", "hr", "sl", "et", "lv"}
