"""Job services that share a database and a data folder."""

import os
import time
from pathlib import Path

import pytest

from app.common.errors import InvalidSetting
from app.database import front_ends as lease
from app.database.connection import Database
from app.jobs.job import Status
from app.jobs.service import JobService
from app.settings import Settings
from tests.event_loop import until
from tests.jobs.databases import ON_BOTH
from tests.jobs.samples import TRANSCRIPT, submission
from tests.jobs.sites import fake_service

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

LEFTOVER, NEW = "e" * 32, "f" * 32


@pytest.fixture(autouse=True)
def _short_renewals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "RENEW_S", 0.1)


def service(url: str, folder: Path, name: str) -> JobService:
    settings = Settings(data_dir=folder, database_url=url, _env_file=None)
    fake = fake_service(settings, shared=True)
    fake.fleet.reason = "the model is being loaded"
    return JobService(fake, settings, Database(url, folder, name))  # type: ignore[arg-type]


async def stop(jobs: JobService) -> None:
    await jobs.stop()
    jobs._service.media.folder.release()


@ON_BOTH
async def test_a_second_front_end_takes_nothing_from_the_first(url: str, tmp_path: Path) -> None:
    first, second = service(url, tmp_path, "a"), service(url, tmp_path, "b")
    await first.start()
    job, _ = await first.submit(submission())
    running = await first.store.begin(job)
    uploads = tmp_path / "uploads"
    for name in (NEW, LEFTOVER):
        (uploads / name).write_bytes(b"RIFF")
    two_days_ago = time.time() - 2 * 86400
    os.utime(uploads / LEFTOVER, (two_days_ago, two_days_ago))
    cancelled = await first.store.cancel(await first.store.add(submission(file=None, url="http://x/")))
    await second.start()
    assert (await second.store.get(job.id)) == running, "it is not requeued"
    assert (await second.store.get(cancelled.id)).status is Status.CANCELLED, "it is being deleted"
    assert [path.name for path in uploads.iterdir()] == [NEW], "a client may be sending it"
    await until(lambda: first.front_end.others)
    assert (first.front_end.leads, second.front_end.leads) == (True, False)
    for jobs in (second, first):
        await jobs.sweep()
    assert abs(first.clock() - second.clock()) < 1.0
    await first.store.succeed(running, TRANSCRIPT, keep_file=True)
    await stop(first)
    await until(lambda: second.front_end.leads)
    await second._token.renew()
    assert await second._token.check(), "it goes on with the first one's token"
    await stop(second)


@ON_BOTH
async def test_front_ends_with_different_data_folders_are_refused(url: str, tmp_path: Path) -> None:
    first = service(url, tmp_path / "one", "a")
    await first.start()
    for _ in range(2):
        second = service(url, tmp_path / "other", "b")
        with pytest.raises(InvalidSetting, match=r"WHISPER_DATA_DIR=.*another data"):
            await second.start()
        await second.front_end.stop()
        await second._database.close()
        second._service.media.folder.release()
    assert not (tmp_path / "other" / "database").exists()
    await stop(first)
