"""The title, the notes and the tags of a job, as requests send and change them."""

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from app.api.transcripts.correction_bodies import clean_line
from app.api.transcripts.versions import is_current
from app.common.errors import PreconditionFailed
from app.jobs.job import Job
from app.jobs.search_terms import MAX_TAG_CHARS, folded_tag
from app.server.errors import validated
from app.server.json_bodies import documented_body, json_object
from app.transcript.text.scripts import with_few_marks

MERGE_PATCH = "application/merge-patch+json"
MAX_TITLE_CHARS = 200
MAX_NOTES_CHARS = 5000
MAX_TAGS = 20

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f]")  # but tabs and line ends


def _title(title: object) -> object:
    return clean_line(title.strip()) or None if isinstance(title, str) else title


def _notes(notes: object) -> object:
    if not isinstance(notes, str):
        return notes
    return with_few_marks(_CONTROLS.sub("", _LINE_ENDS.sub("\n", notes))).strip() or None


def split_tags(tags: object) -> object:
    """The tags of a list or of a text, which commas separate: each once, as it is written first."""
    if tags is None:
        return []
    given = [tags] if isinstance(tags, str) else tags
    if not isinstance(given, list | tuple) or not all(isinstance(part, str) for part in given):
        return tags
    cleaned = (str(clean_line(tag)).strip() for part in given for tag in part.split(","))
    distinct: dict[str, str] = {}
    for tag in cleaned:
        if tag:
            distinct.setdefault(folded_tag(tag), tag)
    return list(distinct.values())


Title = Annotated[
    Annotated[str, Field(max_length=MAX_TITLE_CHARS)] | None,
    BeforeValidator(_title),
    Field(description="Stands for the file name where people read it. Control characters are removed."),
]
Notes = Annotated[
    Annotated[str, Field(max_length=MAX_NOTES_CHARS)] | None,
    BeforeValidator(_notes),
    Field(description="Some lines about the recording. Control characters are removed."),
]
Tags = Annotated[
    list[Annotated[str, Field(max_length=MAX_TAG_CHARS)]],
    BeforeValidator(split_tags),
    Field(
        max_length=MAX_TAGS,
        description="By which jobs are filtered. Commas separate them; case tells none apart.",
    ),
]


class DetailChanges(BaseModel):
    """A JSON merge patch (RFC 7396): members that are absent stay, and null removes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Title = None
    notes: Notes = None
    tags: Annotated[Tags, WithJsonSchema({"type": ["array", "null"], "items": {"type": "string"}})] = []


PATCH_BODY = documented_body(DetailChanges.model_json_schema(), MERGE_PATCH, "application/json")


def detail_changes(body: bytes) -> dict[str, Any]:
    """The fields that a merge patch changes, and their values. Raises InvalidInput."""
    document = json_object(body, '{"title": "Weekly meeting", "tags": ["team"]}')
    return validated(DetailChanges, document).model_dump(exclude_unset=True)


def details_etag(job: Job) -> str:
    """The ETag of the title, notes and tags of a job. Weak: the rest of the job is in the same answers."""
    return f"W/{_etag(job)}"


def check_details(job: Job, if_match: str) -> None:
    """Raise PreconditionFailed unless `If-Match` names the title, notes and tags as they are."""
    if not is_current(if_match, _etag(job)):
        raise PreconditionFailed(
            "The title, the notes or the tags have changed meanwhile. Get the job again, and change those.",
            param="If-Match",
            code="details_changed",
        )


def _etag(job: Job) -> str:
    submission = job.submission
    details = json.dumps([submission.title, submission.notes, submission.tags])
    return f'"{hashlib.blake2s(details.encode(), digest_size=12).hexdigest()}"'
