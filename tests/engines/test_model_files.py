"""Names of models, and where their files are."""

from pathlib import Path

import pytest

from app.common.errors import InvalidSetting, ModelUnavailable
from app.engines.model_files import (
    DEMO_PATH,
    REPOSITORIES,
    Abilities,
    abilities_of,
    locate,
    model_name,
)


def test_the_sizes_are_those_of_faster_whisper() -> None:
    from faster_whisper.utils import _MODELS

    assert REPOSITORIES == _MODELS


@pytest.mark.parametrize(
    ("setting", "device", "name"),
    [
        ("auto", "cuda", "large-v3-turbo"),
        ("auto", "cpu", "small"),
        ("demo", "cuda", "demo"),
        ("large-v3", "cpu", "large-v3"),
        ("Systran/faster-whisper-tiny", "cpu", "Systran/faster-whisper-tiny"),
        (str(DEMO_PATH), "cpu", str(DEMO_PATH)),
    ],
)
def test_a_setting_names_a_model(setting: str, device: str, name: str) -> None:
    assert model_name("WHISPER_MODEL", setting, device) == name


@pytest.mark.parametrize("setting", ["gigantic", "/no/such/folder", "./nowhere", "a b/c"])
def test_a_setting_that_names_no_model_is_refused(setting: str) -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_MODEL="):
        model_name("WHISPER_MODEL", setting, "cpu")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"no model\.bin"):
        model_name("WHISPER_MODEL", str(tmp_path), "cpu")


def test_the_demo_model_and_folders_need_no_download() -> None:
    assert locate("demo").path == DEMO_PATH
    assert locate(str(DEMO_PATH)).path == DEMO_PATH
    assert (DEMO_PATH / "model.bin").is_file()


@pytest.mark.timeout(30)
def test_the_error_for_a_model_that_cannot_be_downloaded_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(ModelUnavailable, match=r"'tiny' is not on this machine.*WHISPER_MODEL"):
        locate("tiny")


def test_turbo_and_english_models_cannot_translate() -> None:
    able = {name for name in REPOSITORIES if abilities_of(name, None).translates}
    assert able == {"tiny", "base", "small", "medium", "large-v1", "large-v2", "large-v3", "large"}
    assert abilities_of("demo", DEMO_PATH).translates


@pytest.mark.parametrize("name", ["/models/tiny.en/", "/models/tiny.en-int8", "tiny.en", "owner/Tiny.EN"])
def test_english_models_are_known_by_the_end_of_their_name(name: str) -> None:
    assert abilities_of(name, None) == Abilities(("en",), translates=False, min_context_s=None)


def test_only_the_end_of_a_name_tells_what_a_model_is() -> None:
    assert abilities_of("/turbo/large-v3", None).translates
    assert abilities_of("/models/tiny.en/large-v3", None).translates
    assert not abilities_of("/models/large-v3-turbo/", None).translates
    assert not abilities_of("distil-whisper/distil-large-v3", None).translates


def test_the_vocabulary_tells_more_than_the_name() -> None:
    assert abilities_of("/models/mine.en", DEMO_PATH).languages == ()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5), ("7.5", 7.5), ("1e-3", 0.001), ("30", 30), ("31", 30), ("1e400", 30), ("Infinity", 30)],
)
def test_a_model_may_name_its_least_audio_context(tmp_path: Path, value: str, seconds: float) -> None:
    (tmp_path / "generation_config.json").write_text(f'{{"min_audio_context_s": {value}}}')
    assert abilities_of("mine", tmp_path).min_context_s == seconds


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"{}",
        b"[5]",
        b"5",
        b'{"min_audio_context_s": 5',
        b'\xff\xfe{"min_audio_context_s": 5}',
        *(
            b'{"min_audio_context_s": %s}' % value
            for value in (b"0", b"-5", b"-1e400", b'"5"', b"true", b"null", b"[5]", b"NaN")
        ),
    ],
)
def test_the_least_audio_context_is_not_known_unless_the_model_says_so(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "generation_config.json").write_bytes(content)
    assert abilities_of("mine", tmp_path).min_context_s is None


def test_the_demo_model_knows_five_seconds() -> None:
    assert abilities_of("demo", DEMO_PATH).min_context_s == 5
