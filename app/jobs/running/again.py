"""Jobs that transcribe the recording of another job again, and revise its transcript."""

from functools import partial

from app.common.errors import PreconditionFailed
from app.jobs.corrections import apply_again
from app.jobs.job import Again, Job
from app.jobs.storage.revisions import ORIGINAL
from app.jobs.storage.store import Store
from app.pool.helper import Helper, work_s
from app.transcript.timeline import Transcript


async def parent_of(store: Store, again: Again) -> Job:
    """The job that has the recording. Raises UnknownJob, and PreconditionFailed for another transcript."""
    parent = await store.get(again.parent)
    if parent.revision != again.revision:
        raise _corrected()
    return parent


async def revise_parent(store: Store, helper: Helper, job: Job, again: Again, transcript: Transcript) -> None:
    """Store the end of a job that has succeeded, and what it makes of its parent's transcript.

    Nothing is stored if that has changed since the job was submitted: PreconditionFailed. Raises UnknownJob
    and IllegalTransition if one of the two was deleted.
    """
    parent = await parent_of(store, again)
    base, original = await store.transcript(parent), await store.transcript(parent, ORIGINAL)
    options, of_parent = job.submission.options, parent.submission.options
    is_part = (options.start, options.end) != (of_parent.start, of_parent.end)
    part = (options.selection.start, options.selection.end or transcript.samples) if is_part else None
    correction = None
    if base.revision == again.revision:  # or else `succeed_again` refuses it
        apply = partial(
            apply_again,
            keep_corrections=again.keep_corrections,
            keep_names=options.speaker_names == of_parent.speaker_names,
        )
        length_s = max(work_s(parent.duration, base.content, original.content), transcript.seconds)
        correction = await helper.run(length_s, apply, base, original, transcript, part)
    try:
        await store.succeed_again(job, transcript, correction, replaces_voices=not is_part)
    except PreconditionFailed:
        raise _corrected() from None


def _corrected() -> PreconditionFailed:
    return PreconditionFailed(
        "The transcript was corrected meanwhile, and stays as it is. Transcribe it again to begin from the "
        "corrections.",
        code="revision_changed",
    )
