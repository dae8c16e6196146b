"""What one front end sees, and does, of what another one changes in the database that they share."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.common.concurrency import end_tasks
from app.common.errors import PreconditionFailed, UnknownJob, UploadConflict, UploadLocked
from app.database import front_ends
from app.database.tables import deliveries
from app.intake import partial_file
from app.intake.budgets import Used, today
from app.jobs import changes
from app.jobs.events import Event
from app.jobs.job import Job, JobProgress, Stage, Status
from app.jobs.service import JobService
from app.jobs.webhooks import outbox as outboxes
from app.jobs.webhooks.delivery import Attempt, Webhooks
from app.jobs.webhooks.outbox import Outbox
from app.settings import Settings
from app.transcript.term_list import parse_terms
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import TRANSCRIPT, submission
from tests.jobs.sites import block, serving
from tests.jobs.test_revisions import correction

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]

OWNER = "somebody"
HOOK = "https://hooks.example/"
CONTENT = bytes(range(256)) * 40


@dataclass
class FrontEnds:
    runs: JobService  # runs the jobs, until they are cancelled
    other: JobService


@pytest.fixture
async def two(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FrontEnds]:
    """Two front ends with one database and one folder, which soon know of each other."""
    monkeypatch.setattr(front_ends, "RENEW_S", 0.2)
    monkeypatch.setattr(changes, "_EXCHANGE_S", 0.2)
    monkeypatch.setattr(changes, "_COUNT_S", 0.2)
    settings = Settings(data_dir=tmp_path / "data", database_url=url, _env_file=None)
    async with serving(settings, name="one", work=block) as runs, serving(settings, name="two") as other:
        yield FrontEnds(runs, other)


async def running(two: FrontEnds, **changes: object) -> Job:
    """A job that was submitted at one front end, and runs at the other."""
    path = two.other._service.media.folder.uploads / ("0" * 32)
    path.write_bytes(b"RIFF")
    job, _ = await two.other.submit(submission(**changes))
    async with aclosing(two.other.subscribe(job, 1)) as events:
        assert (await anext(events)).type == "job.running"
    return await two.other.store.get(job.id)


async def followed(jobs: JobService, job: Job, after: int = 0) -> list[Event]:
    return [event async for event in jobs.subscribe(job, after)]


def types(events: list[Event]) -> list[str]:
    return [event.type.removeprefix("job.") for event in events]


@ON_BOTH
async def test_a_job_is_followed_where_it_does_not_run(two: FrontEnds) -> None:
    job = await running(two)
    following = [asyncio.create_task(followed(each, job)) for each in (two.other, two.other, two.runs)]
    late = asyncio.create_task(followed(two.other, job, after=2))
    for done_s in (1.0, 2.0, 3.0):
        await asyncio.sleep(0.3)
        await two.runs.store.store_progress({job.id: JobProgress(Stage.TRANSCRIBING, done_s, 5.0, 1, 5)})
        assert (await two.other.store.get(job.id)).progress.done_s == done_s
    await two.runs.store.succeed(job, TRANSCRIPT, keep_file=True)
    one, *others = await asyncio.gather(*following)
    assert types(one) == ["queued", "running", *["progress"] * 3, "succeeded"]
    assert [event.number for event in one] == [1, 2, 3, 4, 5, 6]
    assert others == [one, one]
    assert await late == one[2:]


async def test_a_front_end_knows_whether_a_job_is_followed_elsewhere(two: FrontEnds) -> None:
    """Its text is stored sooner then."""
    job = await running(two)
    await until(lambda: not two.runs.store.is_followed(job.id))
    following = asyncio.create_task(followed(two.other, job))
    await until(lambda: two.runs.store.is_followed(job.id))
    await end_tasks(following)
    await until(lambda: not two.runs.store.is_followed(job.id))


@ON_BOTH
@pytest.mark.parametrize("how", ["delete", "trash"])
async def test_a_job_is_ended_where_it_does_not_run(two: FrontEnds, how: str) -> None:
    job = await running(two)
    decoded = two.runs._service.media.folder.pcm
    await until(lambda: any(decoded.iterdir()))
    following = [asyncio.create_task(followed(each, job)) for each in (two.other, two.runs)]
    await asyncio.sleep(0.05)
    if how == "delete":
        await two.other.delete(job.id)
    else:
        await two.other.trash(job)
    with pytest.raises(UnknownJob):
        await two.runs.store.get(job.id)
    for events in await asyncio.gather(*following):
        assert types(events) == ["queued", "running", "cancelled"]
        assert [event.number for event in events] == [1, 2, 3]
        assert '"status": "cancelled"' in events[-1].data
    await until(lambda: not two.runs._runner.running)
    await until(lambda: not any(decoded.iterdir()))
    if how == "trash":
        await two.runs.restore(job)
        assert (await two.other.store.get(job.id)).status in (Status.QUEUED, Status.RUNNING)


@ON_BOTH
async def test_changes_of_a_job_are_seen_at_once(two: FrontEnds) -> None:
    job = await running(two)
    await two.runs.store.get(job.id)
    await two.other.store.describe(job, lambda job: None, title="Otters")
    assert (await two.runs.store.get(job.id)).submission.title == "Otters"
    await two.runs.store.succeed(job, TRANSCRIPT, keep_file=True)
    await two.other.store.correct(job, correction(1))
    assert (await two.runs.store.get(job.id)).revision == 1
    with pytest.raises(PreconditionFailed):
        await two.runs.store.correct(job, correction(1))


@ON_BOTH
async def test_of_changes_at_once_everywhere_one_is_made_after_the_other(two: FrontEnds) -> None:
    job, _ = await two.other.submit(submission(title="0"))
    seen: list[str | None] = []

    def note(before: Job) -> None:
        seen.append(before.submission.title)

    everywhere = (two.runs, two.other) * 10
    await asyncio.gather(
        *(each.store.describe(job, note, title=str(n)) for n, each in enumerate(everywhere, 1))
    )
    last = (await two.runs.store.get(job.id)).submission.title
    assert sorted([*map(int, filter(None, seen)), int(last or 0)]) == list(range(21)), "an update was lost"
    lists = [parse_terms(f'[{{"write": "Ötzi", "for": ["{n}"]}}]') for n in range(20)]
    await asyncio.gather(
        *(each.terms.replace(OWNER, new) for each, new in zip(everywhere, lists, strict=True))
    )


@ON_BOTH
async def test_a_job_that_is_submitted_elsewhere_starts_soon(two: FrontEnds) -> None:
    async with asyncio.timeout(5):  # without a hint, the runner asks every 10 s
        await running(two)


@ON_BOTH
async def test_a_request_that_is_repeated_elsewhere_gets_the_same_job(two: FrontEnds) -> None:
    made = await asyncio.gather(
        *(
            each.submit(submission(file=letter * 32, idempotency_key="key"))
            for each, letter in [(two.runs, "a"), (two.other, "b")] * 3
        )
    )
    assert len({job.id for job, _ in made}) == 1


@ON_BOTH
async def test_the_stream_of_a_queued_job_ends_with_its_deletion_elsewhere(two: FrontEnds) -> None:
    two.runs._service.fleet.reason = "the model is being loaded"
    job, _ = await two.other.submit(submission())
    following = asyncio.create_task(followed(two.runs, job))
    await asyncio.sleep(0.05)
    await two.other.delete(job.id)
    events = await following
    assert (types(events), [event.number for event in events]) == (["queued", "cancelled"], [1, 2])


@ON_BOTH
async def test_no_webhook_is_sent_twice(two: FrontEnds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outboxes, "_CLAIM_S", 3600.0)
    two.runs._service.fleet.reason = "the model is being loaded"
    count = 60
    jobs = [await two.other.store.add(submission(webhook_url=HOOK)) for _ in range(count)]
    sent: Counter[str] = Counter()

    class Receiver:
        """In place of the client of each."""

        async def resolve(self, url: str) -> tuple[str, ...]:
            await asyncio.sleep(0.001)
            return ("192.0.2.1",)

        async def post(self, url: str, addresses: object, headers: dict[str, str], body: bytes) -> int:
            await asyncio.sleep(0.002)
            sent[headers["webhook-id"]] += 1
            return 204

    all_webhooks = []
    for each in (two.runs, two.other):
        webhooks = Webhooks(Outbox(each._database), None, allow_private=True, service_clock=each.clock)
        webhooks._client = Receiver()  # type: ignore[assignment]
        all_webhooks.append(webhooks)
    for job in jobs:
        await two.other.store.cancel(job)
    for webhooks in all_webhooks:
        webhooks.start()
    await until(lambda: len(sent) == count)
    left = sa.select(sa.func.count()).select_from(deliveries)
    while await two.runs._database.scalar(left):  # noqa: ASYNC110 (it has no event)
        await asyncio.sleep(0.05)
    for webhooks in all_webhooks:
        await webhooks.stop()
    assert set(sent.values()) == {1}
    assert all(webhooks.attempts[Attempt.DELIVERED] for webhooks in all_webhooks), "both take part"


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def send(jobs: JobService, upload_id: str, offset: int, parts: AsyncIterator[bytes]) -> int:
    async with jobs.uploads.lock(OWNER, upload_id) as (upload, file):
        _, received = await jobs.uploads.append(upload, file, offset, parts)
        return received


class SlowPart:
    """A part of an upload whose client stops to send after some bytes."""

    def __init__(self, begin: bytes) -> None:
        self._begin = begin
        self.begun, self.goes_on = asyncio.Event(), asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        yield self._begin
        self.begun.set()
        await self.goes_on.wait()
        yield b"late"


@ON_BOTH
async def test_an_upload_is_continued_elsewhere(two: FrontEnds) -> None:
    upload = await two.runs.uploads.create(OWNER, len(CONTENT), "talk.wav", "")
    dead = SlowPart(CONTENT[:3000])
    sending = asyncio.create_task(send(two.runs, upload.id, 0, dead.chunks()))
    await dead.begun.wait()
    _, offset = await two.other.uploads.offset(OWNER, upload.id)
    dead.goes_on.set()
    with pytest.raises(UploadConflict) as ended:
        await sending
    assert ended.value.code == "upload_taken_over"
    assert offset == 3000
    assert await send(two.other, upload.id, offset, chunks(CONTENT[offset:7000])) == 7000
    assert await send(two.runs, upload.id, 7000, chunks(CONTENT[7000:])) == len(CONTENT)
    async with two.other.uploads.complete(OWNER, upload.id) as complete:
        assert complete.sha256 == hashlib.sha256(CONTENT).hexdigest()
        assert complete.path.read_bytes() == CONTENT
        given = submission(file=upload.id, sha256=complete.sha256, from_upload=True)
        job, _ = await two.other.submit(given)
    assert (await two.runs.uploads.find(OWNER, upload.id)).job_id == job.id
    assert await two.runs.uploads.offset(OWNER, upload.id) == await two.other.uploads.offset(OWNER, upload.id)


async def test_the_space_of_an_upload_is_reserved_everywhere(two: FrontEnds) -> None:
    def reserved() -> int:
        return sum(each.outstanding for each in two.other.disk.reservations)

    upload = await two.runs.uploads.create(OWNER, len(CONTENT), "", "")
    await until(lambda: reserved() == len(CONTENT))
    await send(two.runs, upload.id, 0, chunks(CONTENT[:3000]))
    await until(lambda: reserved() == len(CONTENT) - 3000)


async def test_what_an_owner_uses_counts_everywhere(two: FrontEnds) -> None:
    two.other.budgets.count(Used(today(), OWNER, "tiny", 1, 5.0))  # and is not stored yet
    two.runs.budgets.on_charge(Used(today(), OWNER, "tiny", 1, 20.0))
    await two.runs._clips.flush()
    await until(lambda: two.other.budgets.used[today()[:7], OWNER] == 20)


async def test_an_upload_that_is_not_given_up_is_locked(
    two: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the other front end is stopped."""
    monkeypatch.setattr(partial_file, "GIVE_WAY_S", 0.3)
    await two.runs._changes.stop()
    upload = await two.runs.uploads.create(OWNER, len(CONTENT), "", "")
    slow = SlowPart(CONTENT[:3000])
    sending = asyncio.create_task(send(two.runs, upload.id, 0, slow.chunks()))
    await slow.begun.wait()
    with pytest.raises(UploadLocked):
        await two.other.uploads.offset(OWNER, upload.id)
    slow.goes_on.set()
    assert await sending == 3004
    assert (await two.other.uploads.offset(OWNER, upload.id))[1] == 3004


@ON_BOTH
async def test_links_secrets_and_terms_are_those_of_all(two: FrontEnds) -> None:
    ended = 0

    def on_links_ended() -> None:
        nonlocal ended
        ended += 1

    two.runs.on_links_ended = on_links_ended
    job, _ = await two.other.submit(submission())
    here, there = two.other, two.runs
    link, token = await here.shared_links.add(job, OWNER, True, True, True, 3600.0)
    await here.terms.replace(OWNER, parse_terms('[{"write": "Ötzi", "for": ["Oetzi"]}]'))
    secret = await here.link_secrets.of(OWNER)
    await until(lambda: there.link_secrets.by_owner.get(OWNER) == secret)
    await until(lambda: there.shared_links.find(token.encode()) == link)
    await until(lambda: [term.write for term in there.terms.own(OWNER)] == ["Ötzi"])
    before = ended
    await here.shared_links.revoke(job, link.id)
    await until(lambda: there.shared_links.find(token.encode()) is None)
    await until(lambda: ended > before)
    of_both = await asyncio.gather(here.link_secrets.of("new"), there.link_secrets.of("new"))
    assert of_both[0] == of_both[1]
