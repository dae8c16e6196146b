"""The service before it is started."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.common.errors import ClipFailed, InsufficientQuota
from app.common.options import Options
from app.engines.ledger import JobName, new_request
from app.engines.plan import make_plan
from app.intake.uploads import Upload
from app.pool.dispatcher import Dispatcher
from app.recording.recording_work import Observer, WindowDispatcher
from app.recording.result_cache import CachedClipResults
from app.recording.service import TranscriptionService
from app.settings import load_settings
from app.telemetry.work import Work, working_for
from app.transcript.timeline import Transcript
from tests.event_loop import let_tasks_run, until
from tests.jobs.samples import TRANSCRIPT
from tests.pool.fake_slots import FakeSlot
from workers.messages import SAMPLE_RATE, LoadOptions


def service(folder: Path, **given: object) -> TranscriptionService:
    settings = load_settings(data_dir=folder, model="demo", device="cpu", _env_file=None, **given)
    return TranscriptionService(settings, make_plan(settings))


def test_the_settings_name_the_models(tmp_path: Path) -> None:
    assert service(tmp_path).fleet.catalogue.states() == {"demo": "unloaded"}
    catalogue = service(tmp_path, models="large-v3-turbo").fleet.catalogue
    assert (catalogue.default, catalogue.others) == ("demo", ("large-v3-turbo",))
    assert catalogue.resolve("large-v3-turbo") == "large-v3-turbo"


def test_the_settings_name_the_aliases(tmp_path: Path) -> None:
    assert service(tmp_path).fleet.catalogue.resolve("gpt-4o-mini-transcribe") == "demo"
    catalogue = service(tmp_path, models="tiny", model_aliases="gpt-4o-transcribe=tiny").fleet.catalogue
    assert catalogue.resolve("gpt-4o-transcribe") == "tiny"


def test_the_settings_name_the_data_folder(tmp_path: Path) -> None:
    folder = service(tmp_path).media.folder
    folder.lock()
    assert (folder.uploads.is_dir(), folder.pcm.is_dir()) == (True, True)
    assert {path.parent for path in (folder.uploads, folder.pcm)} == {tmp_path}
    folder.release()


def test_the_settings_give_the_number_of_media_workers(tmp_path: Path) -> None:
    assert service(tmp_path, media_workers=7).media.pool.worker_count == 7


@pytest.mark.parametrize(("model", "seconds"), [("demo", 2), ("large-v3-turbo", 8)])
def test_only_the_demo_model_gets_no_long_pauses(tmp_path: Path, model: str, seconds: int) -> None:
    """Whisper knows pauses of three seconds; the demo model loses the words around them."""
    made = service(tmp_path)
    made.fleet.catalogue.options[model] = LoadOptions(model, "", "cpu", "int8", 1)
    upload = Upload(tmp_path / "upload", "talk.wav", 1, "")
    fleet: WindowDispatcher = Dispatcher("worker", [])
    pipeline = made.pipeline(new_request(), upload, Options(), model, fleet, CachedClipResults())
    assert pipeline.work.max_silence == seconds * SAMPLE_RATE


@pytest.mark.anyio
@pytest.mark.timeout(20)
async def test_decoded_audio_is_removed_once_no_worker_reads_it(tmp_path: Path) -> None:
    made = service(tmp_path)
    made.media.folder.lock()
    slot = FakeSlot(0)
    fleet: Dispatcher[Any, Any] = Dispatcher("worker", [slot])
    made.fleet.dispatcher = fleet
    fleet.start()

    async def remove(job: JobName) -> Path:
        """Let a request be cancelled while a worker has a window of it."""
        path = made.media.folder.pcm / job.id
        path.touch()
        slot.unblocked.clear()
        window = asyncio.create_task(fleet.submit(job, "a"))
        await until(lambda: fleet.has_in_flight(job))
        window.cancel()
        fleet.cancel(job)
        await made.remove_decoded(job)
        await let_tasks_run()
        assert path.exists()
        return path

    try:
        removed = await remove(new_request())
        slot.unblocked.set()
        await until(lambda: not removed.exists())
        job = JobName("job", "job")
        kept = await remove(job)
        await made.keep_decoded(job)  # it runs again
        slot.unblocked.set()
        await fleet.until_ended(job)
        await let_tasks_run()
        assert kept.exists()
        await made.remove_decoded(job)
        assert not kept.exists()
    finally:
        await fleet.stop()
        made.media.folder.release()


@pytest.mark.anyio
@pytest.mark.parametrize("fault", [None, ClipFailed(""), InsufficientQuota(""), asyncio.CancelledError()])
async def test_a_caller_pays_for_a_transcript_or_for_what_it_has_read_before_it_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException | None
) -> None:
    made, charged = service(tmp_path), list[tuple[str, str, float]]()
    made.budgets.on_charge = lambda used: charged.append((used.owner, used.model, used.seconds))
    observer = Observer()
    observer.sent_s = 2.5

    class FakePipeline:
        async def run(self) -> Transcript:
            if fault is not None:
                raise fault
            return replace(TRANSCRIPT, start=SAMPLE_RATE)  # 5 s, of which 0.625 s failed

    async def ready(model: str, options: Options) -> tuple[object, str]:
        return Dispatcher("worker", []), model

    monkeypatch.setattr(made.fleet, "ready", ready)
    monkeypatch.setattr(made, "pipeline", lambda *_: FakePipeline())
    with working_for(Work(owner="alice")), suppress(ClipFailed, InsufficientQuota, asyncio.CancelledError):
        await made.transcribe(Upload(tmp_path / "upload", "talk.wav", 1, ""), Options(), "demo", observer)
    wanted = {type(None): [("alice", "demo", 3.375)], ClipFailed: []}
    assert charged == wanted.get(type(fault), [("alice", "demo", 2.5)])
    assert made.budgets.reserved["alice"] == 0


def test_a_service_that_is_not_started_says_why_it_is_not_ready(tmp_path: Path) -> None:
    assert service(tmp_path).fleet.readiness() == "the service is starting"
    assert service(tmp_path).fleet.workers() == []
