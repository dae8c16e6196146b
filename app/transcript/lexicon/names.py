"""Small words inside names: "van" in "Vincent van Gogh", "de" in "Charles de Gaulle".

The lists are written for this project.
"""

from functools import cache

from app.transcript.lexicon.connectives import connectives
from app.transcript.lexicon.leaning_back import leaning_back
from app.transcript.lexicon.leaning_forward import leaning_forward
from app.transcript.lexicon.words import word_form, word_sets

# As texts of any other language write them.
_INTERNATIONAL = """
    van von der den de del della di da dos du des la le el al bin ibn ван фон дер де да ди дель дю ла ле аль
    бин ибн
"""
_PARTICLES = frozenset(map(word_form, _INTERNATIONAL.split()))
# Frequent words of the language, which no other table lists.
_OTHER_WORDS = {
    "bg": "да ди",
    "da": "da la le",
    "de": "da du",
    "es": "da di des",
    "hr": "le di da",
    "hu": "de el le del",
    "nn": "da la le",
    "no": "da la le",
    "pl": "da la",
    "ro": "da",
    "ru": "да ди",
    "sk": "da",
    "sv": "la le",
    "uk": "да ди",
}
_WITHOUT_CAPITALS = {"ar": "بن بنت", "fa": "بن", "he": "בן בת", "ur": "بن"}  # in scripts that have none
# Words of the language itself, which join the parts of names: `Universidad de Sevilla`, `Vasco da Gama`.
_JOINING = {
    "ca": "de del d",
    "es": "de del",
    "fr": "de du des d",
    "it": "di da de del della dei degli",
    "nl": "van de den der",
    "pt": "de da do dos das",
    "ro": "de",
}
_JOINING_SETS = word_sets(_JOINING)
_OTHER_SETS = word_sets(_OTHER_WORDS)


@cache
def name_particles(language: str) -> frozenset[str]:
    """Words that stand only in names. A word of the language, such as the German "der", is none of them."""
    own = frozenset(map(word_form, _WITHOUT_CAPITALS.get(language, "").split()))
    others = leaning_forward(language) | leaning_back(language) | connectives(language)
    return (_PARTICLES - others - _OTHER_SETS.get(language, frozenset())) | own


def particles_in_names(language: str) -> frozenset[str]:
    """Words of the language that join the parts of a name, and other words, too."""
    return _JOINING_SETS.get(language, frozenset())
