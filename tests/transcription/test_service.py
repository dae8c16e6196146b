"""What the service does before it has any work."""

from pathlib import Path

import pytest

from app.errors import InvalidInput, InvalidSetting, UnknownModel
from app.settings import load_settings
from app.transcription.service import TranscriptionService


def service(folder: Path, **settings: object) -> TranscriptionService:
    return TranscriptionService(
        load_settings(data_dir=folder, model="demo", device="cpu", _env_file=None, **settings)
    )


def test_what_a_killed_process_left_behind_is_removed(tmp_path: Path) -> None:
    one = service(tmp_path)
    one.lock_data_dir()
    for folder in (one.settings.uploads_dir, one.settings.pcm_dir):
        for digit in "012":
            (folder / (digit * 32)).touch()
    (one.settings.uploads_dir / "notes.txt").touch()
    one.clean({"1" * 32}, {"2" * 32})
    assert sorted(path.name for path in one.settings.uploads_dir.iterdir()) == ["1" * 32, "notes.txt"]
    assert [path.name for path in one.settings.pcm_dir.iterdir()] == ["2" * 32]


def test_a_data_folder_serves_one_process(tmp_path: Path) -> None:
    first = service(tmp_path)
    first.lock_data_dir()
    first.lock_data_dir()  # it has it already
    with pytest.raises(InvalidSetting, match="another whisperfleet uses this folder"):
        service(tmp_path).lock_data_dir()


def test_models_are_known_by_name(tmp_path: Path) -> None:
    one = service(tmp_path)
    assert [one.resolve_model(name) for name in ("", "whisper-1", "demo")] == ["demo"] * 3
    with pytest.raises(UnknownModel, match="GET /v1/models"):
        one.resolve_model("gpt-4")


def test_a_model_that_cannot_translate_is_refused_with_a_way_out(tmp_path: Path) -> None:
    one = service(tmp_path, models="large-v3-turbo")
    assert one.resolve_model("demo", "translate") == "demo"
    assert one.resolve_model("large-v3-turbo", "transcribe") == "large-v3-turbo"
    with pytest.raises(InvalidInput, match="WHISPER_MODELS=large-v3"):
        one.resolve_model("large-v3-turbo", "translate")


def test_it_says_why_it_is_not_ready(tmp_path: Path) -> None:
    assert service(tmp_path).readiness() == "the service is starting"
    assert service(tmp_path).workers() == []


def test_settings_that_do_not_fit_the_machine_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_MODEL=/no/such/folder"):
        TranscriptionService(load_settings(data_dir=tmp_path, model="/no/such/folder", _env_file=None))
