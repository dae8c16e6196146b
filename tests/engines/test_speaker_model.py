"""Which model embeds voices, as WHISPER_SPEAKER_MODEL names it, and what an error says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.common.errors import InvalidSetting, SpeakerModelUnavailable
from app.engines import speaker_model
from app.engines.speaker_model import check_speaker_model, find_speaker_model, local_speaker_model
from tests.model_hub import model_hub
from tests.workers.media.voice_models import kaldi_model


def test_the_weights_of_resemblyzer_are_the_default() -> None:
    check_speaker_model("")
    model = find_speaker_model("")
    assert (model.name, Path(model.path).name) == ("resemblyzer", "pretrained.pt")
    assert Path(model.path).is_file()
    assert model.identity.startswith("resemblyzer 0.1.4, ")


def test_without_resemblyzer_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaker_model, "find_spec", lambda name: None)
    with pytest.raises(SpeakerModelUnavailable) as raised:
        find_speaker_model("")
    error = raised.value
    assert "`pip install --no-deps resemblyzer`" in error.message
    assert (error.param, error.code) == ("diarize", "speaker_model_unavailable")


def test_a_file_is_known_by_its_state(tmp_path: Path) -> None:
    path = kaldi_model(tmp_path / "voices.onnx")
    check_speaker_model(str(path))
    model = find_speaker_model(str(path))
    assert model.path == str(path)
    assert find_speaker_model(str(path)) == model
    os.utime(path, (1, 1))
    assert find_speaker_model(str(path)).identity != model.identity


@pytest.mark.parametrize(
    "name", ["pytorch.bin", "/no/such/voices.onnx", "voices", "models/voices.onnx", "a/b/c.pt"]
)
def test_a_setting_that_names_nothing_stops_the_start(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pytorch.bin").touch()
    with pytest.raises(InvalidSetting, match=rf"^WHISPER_SPEAKER_MODEL={name}: .*ONNX file"):
        check_speaker_model(name)


def test_names_on_hugging_face_are_looked_up_in_its_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    check_speaker_model("Wespeaker/wespeaker-voxceleb-campplus-LM")
    check_speaker_model("Wespeaker/wespeaker-voxceleb-campplus-LM/voxceleb_CAM++_LM.onnx")
    assert local_speaker_model("Wespeaker/wespeaker-voxceleb-campplus-LM") is None


FIND = """
import sys
from app.engines.speaker_model import find_speaker_model
from app.common.errors import SpeakerModelUnavailable
for setting in sys.argv[1:]:
    try:
        print(find_speaker_model(setting).path)
    except SpeakerModelUnavailable as error:
        print(error.message)
"""


def test_models_on_hugging_face_are_downloaded_once(tmp_path: Path) -> None:
    """In processes of their own: huggingface_hub reads its settings once."""
    folder, cache = tmp_path / "hub", tmp_path / "cache"
    folder.mkdir()
    voices = kaldi_model(folder / "voices.onnx")

    def find(*settings: str, **environ: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", FIND, *settings],
            env=os.environ | {"HF_HOME": str(cache), "HF_HUB_OFFLINE": "0"} | environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    names = ("one/voices", "several/voices")
    with model_hub(folder=folder, repositories=names) as hub:
        [one, absent] = find("one/voices", "nobody/voices", HF_ENDPOINT=hub.url)
        shutil.copy(voices, folder / "voices-int8.onnx")
        [several, named] = find("several/voices", "several/voices/voices.onnx", HF_ENDPOINT=hub.url)
    assert Path(one).read_bytes() == Path(named).read_bytes() == voices.read_bytes()
    assert "there is no model nobody/voices" in absent
    assert "has several ONNX files (voices-int8.onnx, voices.onnx)" in several
    assert "WHISPER_SPEAKER_MODEL=several/voices/" in several
    [again, missing] = find("one/voices", "other/voices", HF_HUB_OFFLINE="1")
    assert again == one
    assert "HF_HUB_OFFLINE is set" in missing
    assert "set WHISPER_SPEAKER_MODEL to its file" in missing
