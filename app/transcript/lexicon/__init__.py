"""Tables of words by language, which say where a line or cue should not break and where a sentence ends.

Each function takes Whisper's code of a language and returns the same set at each call. The sets hold words in
the form that `word_form` gives, so a look-up passes a word through `word_form` first. Pure.
"""

from app.transcript.lexicon.abbreviations import (
    abbreviations,
    abbreviations_before_numbers,
    ambiguous_abbreviations,
)
from app.transcript.lexicon.connectives import connectives, coordinators
from app.transcript.lexicon.leaning_back import leaning_back
from app.transcript.lexicon.leaning_forward import leaning_forward
from app.transcript.lexicon.months import months
from app.transcript.lexicon.names import name_particles, particles_in_names
from app.transcript.lexicon.numbers import nouns_before_numbers, number_words, writes_ordinals_with_dot
from app.transcript.lexicon.titles import titles
from app.transcript.lexicon.units import units_of_measure
from app.transcript.lexicon.words import word_form

__all__ = [
    "abbreviations",
    "abbreviations_before_numbers",
    "ambiguous_abbreviations",
    "connectives",
    "coordinators",
    "leaning_back",
    "leaning_forward",
    "months",
    "name_particles",
    "nouns_before_numbers",
    "number_words",
    "particles_in_names",
    "titles",
    "units_of_measure",
    "word_form",
    "writes_ordinals_with_dot",
]
