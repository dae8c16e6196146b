"""Jobs that transcribe the recording of another job again, and revise its transcript."""

from collections.abc import Callable
from functools import partial

from app.common.options import SPEAKER_OPTIONS, Options
from app.jobs.corrections import Segments, apply_again
from app.jobs.job import Again, Job
from app.jobs.storage.revisions import ORIGINAL, corrected_meanwhile
from app.jobs.storage.store import Store
from app.pool.helper import Helper, work_s
from app.recording.speakers import speaker_count
from app.transcript.speakers.labelling import named_as, spoken_as
from app.transcript.timeline import Transcript


async def parent_of(store: Store, again: Again) -> Job:
    """The job that has the recording. Raises UnknownJob, and PreconditionFailed for another transcript."""
    parent = await store.get(again.parent)
    if parent.revision != again.revision:
        raise corrected_meanwhile()
    return parent


def keeps_speakers(options: Options, of_parent: Options) -> bool:
    """Whether speakers are those of the parent: in a part, unless the client asks for others."""
    is_other = any(
        getattr(options, name) != getattr(of_parent, name) for name in SPEAKER_OPTIONS | {"channels"}
    )
    return _is_part(options, of_parent) and options.channels == "mix" and not is_other


async def revise_parent(store: Store, helper: Helper, job: Job, again: Again, transcript: Transcript) -> None:
    """Store the end of a job that has succeeded, and what it makes of its parent's transcript.

    Nothing is stored if that has changed since the job was submitted: PreconditionFailed. Raises UnknownJob
    and IllegalTransition if one of the two was deleted.
    """
    parent = await parent_of(store, again)
    base, original = await store.transcript(parent), await store.transcript(parent, ORIGINAL)
    options, of_parent = job.submission.options, parent.submission.options
    is_part = _is_part(options, of_parent)
    part = (options.selection.start, options.selection.end or transcript.samples) if is_part else None
    correction = None
    if base.revision == again.revision:  # or else `succeed_again` refuses it
        speakers: Callable[..., Segments] | None = None
        if keeps_speakers(options, of_parent):
            voices = (await store.voices(parent), await store.voices(job))
            speakers = partial(spoken_as, voices=voices, count=speaker_count(options))
        elif options.speaker_names == of_parent.speaker_names:
            speakers = named_as
        apply = partial(apply_again, keep_corrections=again.keep_corrections, speakers=speakers)
        length_s = max(work_s(parent.duration, base.content, original.content), transcript.seconds)
        correction = await helper.run(length_s, apply, base, original, transcript, part)
    await store.succeed_again(job, transcript, correction, replaces_voices=not is_part)


def _is_part(options: Options, of_parent: Options) -> bool:
    return (options.start, options.end) != (of_parent.start, of_parent.end)
