"""The service before it is started."""

from pathlib import Path

from app.engines.plan import make_plan
from app.settings import load_settings
from app.transcription.service import TranscriptionService


def service(folder: Path, **given: object) -> TranscriptionService:
    settings = load_settings(data_dir=folder, model="demo", device="cpu", _env_file=None, **given)
    return TranscriptionService(settings, make_plan(settings))


def test_the_settings_name_the_models(tmp_path: Path) -> None:
    assert service(tmp_path).catalogue.states() == {"demo": "unloaded"}
    catalogue = service(tmp_path, models="large-v3-turbo").catalogue
    assert (catalogue.default, catalogue.others) == ("demo", ("large-v3-turbo",))
    assert catalogue.resolve("large-v3-turbo") == "large-v3-turbo"


def test_the_settings_name_the_data_folder(tmp_path: Path) -> None:
    folder = service(tmp_path).folder
    folder.lock()
    assert (folder.uploads.is_dir(), folder.pcm.is_dir()) == (True, True)
    assert {path.parent for path in (folder.uploads, folder.pcm)} == {tmp_path}
    folder.release()


def test_the_settings_give_the_number_of_media_workers(tmp_path: Path) -> None:
    assert service(tmp_path, media_workers=7)._media.worker_count == 7


def test_a_service_that_is_not_started_says_why_it_is_not_ready(tmp_path: Path) -> None:
    assert service(tmp_path).readiness() == "the service is starting"
    assert service(tmp_path).workers() == []
