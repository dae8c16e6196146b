"""Lists of terms as clients and files have them."""

from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError, from_json

from app.common.errors import fault_of
from app.common.options import MAX_WORDS_CHARS, Language, Options
from app.transcript.terms import Term, TermConflict, check_terms, has_words

MAX_TERMS = 1000
MAX_FORMS = 20  # of a term
MAX_CHARS = 100  # of each text
MAX_ALL_CHARS, MAX_LANGUAGES = 100_000, 10  # of a list: to check one takes a third of a second at most
MAX_HOTWORDS = 20  # prompts make Whisper skip: a few names help, many cost text
EXAMPLE = '{"data": [{"write": "Kubernetes", "for": ["Cuban eighties"]}]}'


def _one_line(text: str) -> str:
    """The text with single spaces."""
    text = " ".join(text.split())
    if not text.isprintable() or not has_words(text):
        raise PydanticCustomError("term", "must be printable text with a letter or a digit")
    return text


_Text = Annotated[str, Field(max_length=MAX_CHARS), AfterValidator(_one_line)]


class TermEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)

    write: _Text = Field(description="The word, or several, as it should be written.")
    for_: Annotated[list[_Text], Field(min_length=1, max_length=MAX_FORMS)] = Field(
        alias="for", description="What is written instead today: whole words, in any case."
    )
    language: Language = Field(None, description="ISO 639-1: only in text of this language.")


class TermList(BaseModel):
    """Terms of an owner, a request or the service. None changes what another one writes."""

    model_config = ConfigDict(extra="forbid", serialize_by_alias=True)

    data: Annotated[list[TermEntry], Field(max_length=MAX_TERMS)]

    @model_validator(mode="after")
    def _check_conflicts(self) -> Self:
        chars = sum(len(text) for entry in self.data for text in (entry.write, *entry.for_))
        if chars > MAX_ALL_CHARS or len({entry.language for entry in self.data}) > MAX_LANGUAGES:
            raise PydanticCustomError(
                "terms_too_large",
                "has {chars} characters; it may have {most}, and {languages} languages",
                {"chars": chars, "most": MAX_ALL_CHARS, "languages": MAX_LANGUAGES},
            )
        try:
            check_terms(self.terms)
        except TermConflict as error:
            raise PydanticCustomError("term_conflict", "{fault}", {"fault": str(error)}) from None
        return self

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(Term(entry.write, tuple(entry.for_), entry.language) for entry in self.data)

    @classmethod
    def of(cls, terms: tuple[Term, ...]) -> "TermList":
        """The list of terms that were checked."""
        entries = [
            TermEntry.model_construct(write=term.write, for_=list(term.heard), language=term.language)
            for term in terms
        ]
        return cls.model_construct(data=entries)


@lru_cache(maxsize=32)
def parse_terms(content: str | bytes) -> tuple[Term, ...]:
    """The terms in JSON, `TermList` or its `data` alone. Raises ValueError with what is wrong."""
    try:
        document: Any = from_json(content)
        return TermList.model_validate({"data": document} if isinstance(document, list) else document).terms
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise ValueError(f"{place}: {fault_of(problem)}" if place else fault_of(problem)) from None


def packed_terms(terms: tuple[Term, ...]) -> str:
    """The reverse of `parse_terms`."""
    return TermList.of(terms).model_dump_json(exclude_none=True)


def read_terms(path: Path) -> tuple[Term, ...]:
    """The terms in a file: see `parse_terms`. Raises also OSError."""
    return parse_terms(path.read_bytes())


def with_hotwords(options: Options, terms: tuple[Term, ...]) -> Options:
    """The options, with the first terms as hot words after those that they have."""
    words = ", ".join(filter(None, (options.hotwords, *(term.write for term in terms[:MAX_HOTWORDS]))))
    if len(words) > MAX_WORDS_CHARS:
        words = words[:MAX_WORDS_CHARS].rpartition(",")[0]
    return options.model_copy(update={"hotwords": words or None})
