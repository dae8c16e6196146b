"""The jobs of the service: submit, subscribe to, and delete them."""

import asyncio
import math
import signal
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy.exc import IntegrityError

from app.common.concurrency import end_tasks
from app.common.errors import (
    NOT_KEPT,
    STOPPING,
    AudioNotKept,
    DiskFull,
    IllegalTransition,
    InvalidSetting,
    KeyReused,
    NoTrash,
    NotReady,
    OutcomeUnknown,
    UnknownJob,
    WhisperfleetError,
)
from app.common.files import try_lock
from app.database.connection import Database
from app.database.front_ends import FrontEnd
from app.intake.budgets import today
from app.intake.disk import DiskSpace
from app.intake.downloads import clean as clean_downloads
from app.intake.limits import limit_of_jobs
from app.intake.resumable import Uploads
from app.jobs.changes import NOTICED_S, Changes
from app.jobs.document import timestamp
from app.jobs.ended import EndedJobs
from app.jobs.events import Event, Subscriptions, cancellation
from app.jobs.folder_token import FolderToken
from app.jobs.job import Job, Status, Submission
from app.jobs.kept_recordings import KeptRecordings
from app.jobs.link_secrets import LinkSecrets
from app.jobs.running.again import parent_of
from app.jobs.running.clip_store import ClipStore
from app.jobs.running.executor import decoded_file, run_name
from app.jobs.running.live_job import LiveJob
from app.jobs.running.runner import JobRunner, trace_job
from app.jobs.shared_links import SharedLinks
from app.jobs.storage.retention import Retention
from app.jobs.storage.service_clock import ServiceClock
from app.jobs.storage.store import Store
from app.jobs.storage.usage import sums_of
from app.jobs.term_lists import TermLists, common_terms
from app.jobs.webhooks.delivery import Webhooks
from app.jobs.webhooks.outbox import Outbox
from app.media.sound_copies import remove_leftover_copies
from app.recording.service import TranscriptionService
from app.settings import Settings
from app.transcript.speakers.labelling import KnownSpeaker
from app.transcript.terms import Term

UNFINISHED = (Status.QUEUED, Status.RUNNING)
DRAIN_S = 4.0  # a stop waits so long for batches in flight; Docker kills after 10 s
_SWEEP_S = 60.0  # between two searches for expired jobs, at most
_LEFT_AFTER_S = 86400.0  # a file that no front end has written for so long, and no job names, is left over
_OTHER_START_S = 0.05  # between two looks whether another front end has cleaned the folder
_COMMIT_S = 600.0  # a commit that seemed to fail comes through within that time, or never
_SWEPT_AT_ONCE = 100  # reading thousands of rows at once would block the event loop

log = structlog.get_logger(__name__)


class JobService:
    """The jobs of one data folder and one database. Look jobs up in `store`; `uploads` are resumable ones."""

    def __init__(
        self,
        service: TranscriptionService,
        settings: Settings,
        database: Database,
        front_end: FrontEnd | None = None,
    ) -> None:
        """`start` opens the database if it is not open, and `stop` closes it in any case."""
        self.front_end = front_end or FrontEnd(database)
        retention = Retention(settings.result_ttl_s, settings.keep_corrected, settings.trash_ttl_s)
        self.clock = ServiceClock(database)
        self.store = Store(
            database,
            helper=service.helper,
            retention=retention,
            service_clock=self.clock,
            front_end=self.front_end,
        )
        self.link_secrets = LinkSecrets(database)
        self.shared_links = SharedLinks(database, self.clock)
        older_note = "" if settings.database_url is None else database.name
        self._token = FolderToken(database, service.media.folder.note, older_note)
        self.terms = TermLists(database, common_terms(settings))
        self.uploads = Uploads(database, service.media.folder, settings, self.clock)
        self.recordings = KeptRecordings(service.media, self.store, service.helper)
        self._service = service
        self.budgets = service.budgets
        self._settings = settings
        self.disk = service.media.folder.disk
        if settings.owner_storage_mb is not None:
            self.disk.most_stored = settings.owner_storage_mb * 10**6
        self.on_links_ended: Callable[[], object] = lambda: None
        self._limit = limit_of_jobs(settings)
        self._database = database
        folder = Path(database.url.database or "").parent
        self._database_disk = DiskSpace(folder) if database.is_sqlite else None
        self._clips = ClipStore(database, self.front_end)
        self._runner = JobRunner(service, self.store, self._clips, settings)
        self.front_end.on_lost = self._runner.abandon
        self._subscriptions = Subscriptions()
        self._changes = Changes(
            database=database,
            front_end=self.front_end,
            store=self.store,
            subscriptions=self._subscriptions,
            runner=self._runner,
            service=service,
            uploads=self.uploads,
            disk=self.disk,
            folder=service.media.folder.path / "front_ends",
            load_access=self._load_access,
            load_used=self.load_used,
        )
        self.store.on_event = self._subscriptions.publish
        self.store.is_followed = self._changes.is_followed
        self.webhooks = Webhooks(
            Outbox(database), settings.webhook_secret, settings.webhook_allow_private, self.clock
        )
        self.store.on_webhook = self.webhooks.added
        self.ended = EndedJobs()
        self.store.on_end = self._ended
        self.store.on_used = self.budgets.count
        self.budgets.on_charge = self._clips.put_used
        self._sweeper: asyncio.Task[None] | None = None
        self._admission = asyncio.Lock()
        self._trashing = asyncio.Lock()  # what goes on must wait until its last run has ended
        self._deleting: Counter[str] = Counter()  # jobs that nobody may have transcribed again, by their ids
        self._uncertain: dict[str, float] = {}  # files that may belong to a job, and since when (monotonic)
        self._stopping = False

    async def start(self) -> None:
        """Requeue the jobs that an earlier process left running, remove leftover files, and run jobs.

        Raises InvalidSetting if the database cannot be used, or the folder is not the others'.
        """
        await self._database.open()
        await self.front_end.start()
        await self.store.advance_clock()
        await self._load_access()
        await self.load_used()
        await self._runner.requeue_orphans()
        await self._end_deletions()
        unfinished = await self.store.with_status(UNFINISHED)
        queued = [job for job in unfinished if job.status is Status.QUEUED]
        for job in queued:
            self.budgets.of_job(job.id, job.submission.owner)
        files = await self.store.files() | await self.uploads.start()
        decoded = {decoded_file(job.pcm) for job in unfinished if job.pcm is not None}
        path = self._service.media.folder.path / "start.lock"
        while (lock := await asyncio.to_thread(try_lock, path)) is None:  # noqa: ASYNC110 (of a file)
            await asyncio.sleep(_OTHER_START_S)
        with closing(lock):
            await self._clean(files, decoded)
        await self._service.media.copies.load(self._leftover_before)
        self.disk.stored = await self.store.bytes_by_owner()
        if queued:
            log.info("resuming unfinished jobs", jobs=len(queued))
        self._clips.start()
        if self._settings.webhook_secret is not None:
            self.webhooks.start()  # without a secret, webhooks stay in the outbox
        self._runner.start()
        self._changes.start()
        self._sweeper = asyncio.create_task(self._sweep_forever(), name="job-sweeper")

    async def _load_access(self) -> None:
        await self.link_secrets.load()
        await self.shared_links.load()
        await self.terms.load()
        self.on_links_ended()

    @property
    def _leftover_before(self) -> float:
        """When files must have been written last (Unix time, s) to be left over if no job names them.

        Other front ends may be writing such files now.
        """
        return time.time() - _LEFT_AFTER_S if self._database.is_shared else math.inf

    async def _end_deletions(self) -> None:
        """Delete cancelled jobs: an earlier process stopped in the middle of their deletion."""
        for job in await self.store.with_status([Status.CANCELLED]):
            is_going_on = self._database.is_shared and time.time() - (job.finished_at or 0.0) < _SWEEP_S
            if not is_going_on and await self.store.delete(job):
                await self._remove_files(job)

    async def _clean(self, uploads: set[str], pcm: set[str]) -> None:
        """Remove all files but those named; none if they may belong to the jobs of another database."""
        folder = self._service.media.folder
        aside = await asyncio.to_thread(folder.finish_restoration, uploads)
        if aside is not None:
            log.warning("the recordings of the database before the restoration are aside", folder=str(aside))
        is_valid = await self._token.check()
        if self.front_end.others and not (is_valid and self._token.is_noted):
            raise InvalidSetting(
                f"WHISPER_DATA_DIR={folder.path}: other front ends use this database with another data "
                "folder. Give all of them the same one"
            )
        if not is_valid:
            log.warning(
                "the data folder's recordings may belong to jobs in another database, or in another state of "
                "this one, and are kept",
                remove_to_go_on=str(folder.note),
            )
            return
        before = self._leftover_before
        await asyncio.to_thread(folder.clean, uploads, pcm, before)
        await asyncio.to_thread(remove_leftover_copies, folder.copies, uploads, before)
        await asyncio.to_thread(clean_downloads, folder.uploads, before)
        with suppress(DiskFull, OSError):  # the sweeper does it later
            await self._token.renew()

    async def withdraw(self, owner: str) -> None:
        """End what an owner has made that gives or takes data: links, webhooks and uploads.

        Raises what `Database` raises.
        """
        await self.shared_links.load(withdrawn=owner)
        await self.link_secrets.renew([owner], self.link_secrets.by_owner.keys() & {owner})
        self.on_links_ended()
        await self.store.drop_webhooks(owner)
        await self.uploads.withdraw(owner)

    def end_event_streams(self) -> None:
        """End all subscriptions."""
        self._subscriptions.close()

    def begin_shutdown(self) -> None:
        """Accept no more jobs and end all subscriptions: the service will stop soon."""
        self._stopping = True
        self.end_event_streams()

    async def stop(self) -> None:
        """Stop all work. Batches in flight have `DRAIN_S` to end; the next start resumes unfinished jobs."""
        self.begin_shutdown()
        await self._service.fleet.drain(DRAIN_S)
        await end_tasks(self._sweeper)
        await self._changes.stop()
        await self.recordings.stop()
        await self._runner.stop()
        await self.webhooks.stop()
        await self.front_end.stop()
        await self._database.close()

    async def check_space(self) -> None:
        """Raise DiskFull if clients may not make the database grow now: the margin of its disk is in use.

        A database server's disk is not known.
        """
        if self._database_disk is not None:
            await asyncio.to_thread(self._database_disk.check_margin)

    async def usage(self, *asked: Any, limit: int | None = None) -> Sequence[Any]:
        """The rows of `sums_of`, `limit` at most."""
        with suppress(WhisperfleetError):  # without what the latest requests have used
            await self._clips.flush()
        return await self._database.rows(sums_of(*asked).limit(limit))

    async def load_used(self) -> None:
        """Read what owners have used in this month, most first."""
        day = today()
        rows = await self.usage(f"{day[:7]}-01", day, ["owner"])
        used = {(day[:7], row.owner): row.seconds for row in sorted(rows, key=lambda row: -row.seconds)}
        if self._database.is_shared:  # what is not stored yet counts, too
            for key, seconds in self.budgets.used.items():
                used[key] = max(seconds, used.get(key, 0.0))
        self.budgets.used = defaultdict(float, used)

    def _ended(self, job: Job) -> None:
        self.budgets.end_job(job.id)
        self.ended.add(job)

    async def check_capacity(self, owner: str, key: str | None) -> None:
        """Raise QueueFull if `owner` cannot submit another job, InsufficientQuota if it has used its budget,
        and as `check_space` and `check_share`.

        A request with an idempotency key that has a job already is no other job.
        """
        if key is None or await self.store.find(owner, key) is None:
            await asyncio.to_thread(self.disk.check_share, owner)
            await self._check_capacity(owner)

    async def _check_capacity(self, owner: str) -> None:
        self.budgets.check(owner)
        await self.check_space()
        # Jobs that can run at once do not count as waiting, even if they have not started yet.
        at_once = self._service.fleet.jobs_at_once * (1 + len(self.front_end.others))
        self._limit.check(owner, await self.store.count_by_owner(UNFINISHED), at_once)

    async def submit(
        self, submission: Submission, known: Sequence[KnownSpeaker] = (), terms: tuple[Term, ...] = ()
    ) -> tuple[Job, bool]:
        """Add a job to the queue. Returns it, and whether the submission's file belongs to it.

        `known`: the voices that its client knows. `terms`: what it is transcribed with.

        If the idempotency key has a job already, that is returned. Its file is replaced if it is gone.

        Raises KeyReused if that job is of another request, NotReady while the service stops, and as
        `check_capacity` and `Store.add` do. Only after OutcomeUnknown the file belongs to this service, which
        removes it if it turns out to have no job; in all other cases the caller removes it. A resumable
        upload (`from_upload`) is removed by nobody: unless it has a job then, it can still be used.
        """
        if self._stopping:
            raise NotReady(STOPPING)
        key = submission.idempotency_key
        async with self._admission:  # or concurrent requests could exceed the limits
            if key is not None:
                earlier = await self.store.find(submission.owner, key)
                if earlier is not None:
                    return await self._resubmit(earlier, submission)
            await self._check_capacity(submission.owner)
            if submission.again is not None and submission.again.parent in self._deleting:
                raise UnknownJob("The job is being deleted.")
            try:
                job = await self.store.add(submission, known, terms)
            except IntegrityError:
                # A commit that seemed to fail has come through meanwhile.
                earlier = await self.store.find(submission.owner, key) if key is not None else None
                if earlier is None:
                    raise KeyReused(f"The Idempotency-Key {key!r} is in use.") from None
                return await self._resubmit(earlier, submission)
            except OutcomeUnknown:
                if submission.file is not None and not submission.from_upload:
                    self._uncertain[submission.file] = time.monotonic()
                raise
            finally:
                self._runner.wake()
            self.budgets.of_job(job.id, submission.owner)
            if submission.file is not None:
                self.disk.stored[submission.owner] += submission.size or 0
            if submission.from_upload and submission.file is not None:
                self.uploads.release(submission.file)
        return job, True

    async def open_live(self, submission: Submission, terms: tuple[Term, ...] = ()) -> LiveJob:
        """A job whose recording comes by a live stream. It runs until `end_live`.

        Raises NotReady while the service stops, and as `check_capacity` and `Store.add` do.
        """
        if self._stopping:
            raise NotReady(STOPPING)
        async with self._admission:
            await asyncio.to_thread(self.disk.check_share, submission.owner)
            await self._check_capacity(submission.owner)
            return await self._runner.open_live(submission, terms)

    async def resume_live(self, job_id: str, owner: str) -> LiveJob:
        """A live job of an owner, whose stream the end of the service has ended, for another stream.

        Raises UnknownJob, UnknownStream if it waits for none, NotReady, DiskFull and OSError.
        """
        if self._stopping:
            raise NotReady(STOPPING)
        async with self._trashing:
            return await self._runner.resume_live(await self.store.get(job_id, owner))

    async def end_live(self, live: LiveJob) -> None:
        """The stream of a job has ended: transcribe what came, as an upload of it, or else delete the job.

        When the service stops, it waits for the next start.
        """
        if live.is_silent and not live.is_closed:
            with suppress(WhisperfleetError):  # it is deleted already
                await self.delete(live.job.id)
        await self._runner.end_live(live, waits=self._stopping)

    async def run_again(self, job: Job) -> Job:
        """Queue a failed job again, as it was submitted: only what it lacks is transcribed.

        Raises AudioNotKept if its recording is gone, UnknownJob, and as `check_capacity` and `Store.add` do.
        """
        again, url, size = job.submission.again, job.submission.url, job.submission.size
        recorded = job if again is None else await parent_of(self.store, again)
        if (url is None or size is not None) and not await self._has_file(recorded):  # or never downloaded
            raise AudioNotKept(NOT_KEPT)
        async with self._admission:
            await self._check_capacity(job.submission.owner)
            if job.id in self._deleting:
                raise UnknownJob("The job is being deleted.")
            with suppress(IllegalTransition):  # another request was faster
                await self.store.reopen(job)
        self._runner.wake()
        return await self.store.get(job.id)

    async def _resubmit(self, earlier: Job, submission: Submission) -> tuple[Job, bool]:
        """The job of an earlier request with the same key; it gets the submission's file if its own is gone.

        A resumable upload stays as it is: its client can use it with another key.
        Raises KeyReused if that request was another one.
        """
        if earlier.submission.fingerprint != submission.fingerprint:
            raise KeyReused(
                f"The Idempotency-Key {submission.idempotency_key!r} stands for another request. Use a new "
                "key for each new job, and the same one only to send the same request again.",
                param="Idempotency-Key",
            )
        self._runner.wake()  # it does not know of a job whose commit seemed to fail
        is_settled = earlier.status.is_terminal or submission.from_upload or submission.file is None
        if is_settled or await self._has_file(earlier):
            return earlier, False
        log.warning("the recording of a job is gone; the repeated request replaces it", job=earlier.id)
        await self.store.update(earlier.id, file=submission.file)
        job = await self.store.get(earlier.id)
        self._runner.wake()
        return job, True

    async def _has_file(self, job: Job) -> bool:
        path = self._service.media.folder.uploads / (job.submission.file or "")
        return await asyncio.to_thread(path.is_file)

    async def delete(self, job_id: str) -> None:
        """Cancel a job if it is unfinished, and delete it with all its data, also in the trash.

        So it is with the jobs that transcribe it again. Raises UnknownJob.
        """
        self._deleting[job_id] += 1
        try:
            async with self._admission:  # after a child that is being submitted, and a return to the queue
                job = await self.store.get_any(job_id)
                children = await self.store.children(job)
            for child in children:
                with suppress(UnknownJob):  # somebody has deleted it just now
                    await self._delete(child)
            await self._delete(job)
        finally:
            self._deleting[job_id] -= 1
            self._deleting += Counter()  # drops what is 0

    async def trash(self, job: Job) -> Job:
        """Put a job into the trash with those that transcribe it again; they are cancelled if unfinished.

        Raises NoTrash, and UnknownJob.
        """
        if not self._settings.trash_ttl_s:
            raise NoTrash(
                "This service has no trash (WHISPER_TRASH_TTL_S is 0). DELETE deletes the job for ever.",
            )
        if job.submission.again is not None:
            raise NoTrash(
                f"The job transcribes the job {job.submission.again.parent} again, and goes into the trash "
                "with it alone. DELETE ends it, and that one's transcript stays.",
                code="has_parent",
            )
        async with self._trashing:
            async with self._admission:  # after a child that is being submitted
                cancelled = await self.store.trash(job)
            for each in cancelled:
                await self._runner.cancel(each.id)
                await self._service.remove_decoded(run_name(each))
                trace_job(each)
        await self.recordings.cancel(job)
        return await self.store.get_any(job.id)

    async def restore(self, job: Job) -> Job:
        """Take a job out of the trash with those that transcribe it again. What was cancelled there goes on.

        Raises NoTrash, UnknownJob, and as `check_capacity` if it cannot go on now.
        """
        async with self._trashing, self._admission:
            job = await self.store.get_any(job.id)
            family = [job, *await self.store.children(job)]
            if any(each.id in self._deleting for each in family):
                raise UnknownJob("The job is being deleted.")
            if job.trashed_at is not None and job.submission.again is not None:
                raise NoTrash(
                    f"The job transcribes the job {job.submission.again.parent} again, and comes back with "
                    "it alone. Restore that one.",
                    code="has_parent",
                )
            if job.trashed_at is not None and any(each.status is Status.CANCELLED for each in family):
                await self._check_capacity(job.submission.owner)
            restored = await self.store.restore(job)
        self._runner.wake()
        return restored

    async def _delete(self, job: Job) -> None:
        if not job.status.is_terminal:
            runs_elsewhere = job.status is Status.RUNNING and job.id not in self._runner.running
            with suppress(IllegalTransition):  # it ended just now
                await self.store.cancel(job)
            if runs_elsewhere and self._database.is_shared:
                await asyncio.sleep(NOTICED_S)  # its front end stops it, and removes what is decoded
            await self._runner.cancel(job.id)  # after `cancel`, so the runner cannot start it in between
            job = await self.store.get_any(job.id)
            if job.status is Status.CANCELLED:
                trace_job(job)
        # The row goes first, so a job is never without its files. The next start removes leftover files.
        await self.store.delete(job)
        await self._remove_files(job)

    async def subscribe(self, job: Job, after: int) -> AsyncGenerator[Event]:
        """All events of a job with higher numbers than `after`, as they happen; ends with the job.

        The last event of a deleted job is its cancellation. Ends early if the service stops.
        """
        with self._subscriptions.subscribe(job.id) as live:
            if self._stopping:
                return
            while stored := await self.store.events(job, after):
                for event in stored:
                    yield event
                    after = event.number
                if stored[-1].is_last:
                    return
            try:
                job = await self.store.get(job.id)
                if job.status.is_terminal and not await self.store.has_events(job, after):
                    return  # `after` is higher than the number of any event
            except UnknownJob:
                live.put_nowait(None)  # deleted; its cancellation is in the queue, or came before it
            while (newest := await live.get()) is not None:
                # Another front end may have stored events between the last one and this.
                has_gap = newest.number > after + 1
                for event in [*(await self.store.events(job, after) if has_gap else ()), newest]:
                    if event.number > after:
                        yield event
                        after = event.number
                    if event.is_last:
                        return
            if self._database.is_shared and not self._stopping and not job.status.is_terminal:
                yield cancellation(job, after + 1, time.time())

    async def _remove_files(self, job: Job) -> None:
        """Remove the files of a job whose row no longer names them."""
        await self.recordings.cancel(job)
        await self._service.remove_decoded(run_name(job))
        if job.submission.file:
            path = self._service.media.folder.uploads / job.submission.file
            await asyncio.to_thread(path.unlink, missing_ok=True)
            await self._service.media.copies.remove(job.submission.file)
            self.disk.stored[job.submission.owner] -= job.submission.size or 0

    async def _sweep_forever(self) -> None:
        """Delete expired jobs, and stop the service if another one has acquired the database's lock."""
        while True:
            try:
                await self._database.verify_lock()
                await self.sweep()
                await self._remove_files_without_job()
                if self.front_end.leads:
                    await self.store.add_passages(_SWEPT_AT_ONCE)
                    await self._token.renew()
            except InvalidSetting as error:
                log.critical("stopping", error=error.message)
                signal.raise_signal(signal.SIGTERM)
                return
            except (WhisperfleetError, OSError) as error:
                log.error("expired jobs cannot be deleted; retrying", error=repr(error))
            ttl_s = min(self._settings.result_ttl_s, self._settings.trash_ttl_s or _SWEEP_S)
            await asyncio.sleep(min(_SWEEP_S, ttl_s / 2))

    async def sweep(self) -> None:
        """Advance the time of service, and delete all whose time is over. Raises what `Database` raises."""
        await self.store.advance_clock()
        if self.front_end.leads:
            await self._remove_expired()
            if self._database.is_shared:
                await self._end_deletions()
        await self.uploads.sweep()
        await self.shared_links.load()
        self.disk.stored = await self.store.bytes_by_owner()

    async def _remove_expired(self) -> None:
        """Delete the jobs whose time is over, and the recordings of those that stay."""
        while expired := await self.store.expired(_SWEPT_AT_ONCE):
            for job in expired:
                if await self.store.delete(job, only_expired=True):
                    await self._remove_files(job)
                    self._log_expired("job deleted: its time is over", job)
        while expired := await self.store.with_expired_recordings(_SWEPT_AT_ONCE):
            for job in expired:
                if await self.store.drop_recording(job):
                    await self._remove_files(job)
                    self._log_expired("recording of a corrected job deleted: its time is over", job)

    def _log_expired(self, event: str, job: Job) -> None:
        created_at = timestamp(job.created_at)
        log.info(event, job=job.id, created_at=created_at, result_ttl_s=self._settings.result_ttl_s)

    async def _remove_files_without_job(self) -> None:
        """Remove the files of submissions that seemed to fail at the commit, and did."""
        seemed_to_fail_before = time.monotonic() - _COMMIT_S
        files = [file for file, at in self._uncertain.items() if at < seemed_to_fail_before]
        of_jobs = await self.store.files() if files else set()
        for file in files:
            if file not in of_jobs:
                path = self._service.media.folder.uploads / file
                await asyncio.to_thread(path.unlink, missing_ok=True)
            del self._uncertain[file]
