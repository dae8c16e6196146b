"""The model of voices while the service looks for it."""

import asyncio
from pathlib import Path

import pytest

from app.common.errors import InvalidSetting, SpeakerModelUnavailable, TaskCrashes
from app.engines import speaker_model
from app.engines.plan import make_plan
from app.recording import speaker_models
from app.recording.service import TranscriptionService
from app.recording.speaker_models import SpeakerModels
from app.settings import load_settings
from tests.event_loop import until
from tests.workers.media.voice_models import kaldi_model
from workers.messages import SpeakerModel

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(20)]


async def no_fault(model: SpeakerModel) -> str | None:
    return None


def service(folder: Path, **given: str) -> TranscriptionService:
    settings = load_settings(data_dir=folder, model="demo", device="cpu", _env_file=None, **given)
    return TranscriptionService(settings, make_plan(settings))


async def test_the_bundled_model_is_there_at_once(tmp_path: Path) -> None:
    made = service(tmp_path)
    made.media.speaker_models.check()
    assert (await made.media.speaker_models.get()).name == "resemblyzer"


async def test_without_it_requests_that_ask_who_speaks_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speaker_model, "find_spec", lambda name: None)
    made = service(tmp_path)
    with pytest.raises(SpeakerModelUnavailable, match="pip install --no-deps resemblyzer"):
        made.media.speaker_models.check()
    with pytest.raises(SpeakerModelUnavailable):
        await made.media.speaker_models.get()
    with pytest.raises(SpeakerModelUnavailable):
        await made.media.pool.embed_voices("job", tmp_path, [(0, 1)])


def test_a_setting_that_names_nothing_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_SPEAKER_MODEL=/no/such\.onnx"):
        service(tmp_path, speaker_model="/no/such.onnx")


async def test_requests_wait_while_the_model_is_looked_for(tmp_path: Path) -> None:
    models = SpeakerModels(str(kaldi_model(tmp_path / "voices.onnx")))
    may_answer = asyncio.Event()

    async def find_fault(model: SpeakerModel) -> str | None:
        await may_answer.wait()
        return None

    models.start(find_fault)
    waiting = asyncio.create_task(models.get())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    models.check()
    may_answer.set()
    assert (await waiting).path == str(tmp_path / "voices.onnx")
    await models.stop()


async def test_a_model_that_arrives_later_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaker_models, "_RETRY_S", 0.01)
    path = kaldi_model(tmp_path / "voices.onnx")
    answers = [TaskCrashes("every process crashed"), OSError("odd"), "its input is of another model", None]
    reasons = []

    async def find_fault(model: SpeakerModel) -> str | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        with pytest.raises(SpeakerModelUnavailable) as raised:
            models.check()
        reasons.append(raised.value.message)
        return answer

    models = SpeakerModels(str(path))
    models.start(find_fault)
    with pytest.raises(SpeakerModelUnavailable, match=r"cannot be loaded \(every process crashed\)"):
        await models.get()
    await until(lambda: not (answers or models._model is None))
    assert (await models.get()).path == str(path)
    models.check()
    assert reasons[0] == f"WHISPER_SPEAKER_MODEL={path} cannot be had: OSError('odd')."
    assert reasons[1] == (
        f"WHISPER_SPEAKER_MODEL={path} is no model that can embed voices: its input is of another model."
    )
    await models.stop()
