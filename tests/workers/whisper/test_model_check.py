"""Models whose files do not fit together."""

import json
from pathlib import Path

import pytest

from app.common.known_errors import diagnose
from app.engines.model_files import DEMO_PATH
from tests.model_variants import (
    Edit,
    copy_demo,
    with_alignment_heads,
    with_json,
    with_large_v3_tokenizer,
    with_mel_bins,
    without,
    without_timestamps,
)
from workers.messages import LoadOptions
from workers.whisper import worker as whisper
from workers.whisper.model_check import ModelShape, check_files, missing_word_times, read_shape


def test_the_dimensions_are_read_from_the_weights() -> None:
    assert read_shape(DEMO_PATH / "model.bin") == ModelShape(80, 51865, 2, 4)


def test_the_demo_model_passes() -> None:
    check_files(DEMO_PATH)
    assert missing_word_times(DEMO_PATH) is None


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (with_mel_bins(128), "preprocessor_config.json says 128 mel bins, but the model has 80"),
        (without("tokenizer.json"), "the model's folder has no tokenizer.json"),
        (with_large_v3_tokenizer(), "tokenizer.json has 51866 tokens, but the model has 51865"),
        (
            with_json("vocabulary.json", lambda tokens: [*tokens[:50300], "<|yue|>", *tokens[50300:]]),
            "<|notimestamps|> is token 50363 in tokenizer.json, and 50364 in the model's vocabulary",
        ),
    ],
)
def test_files_that_do_not_fit_are_refused_before_the_model_is_loaded(
    tmp_path: Path, edit: Edit, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_demo(tmp_path / "model", edit)
    monkeypatch.setattr("ctranslate2.models.Whisper", None)
    with pytest.raises(RuntimeError) as refused:
        whisper.load(LoadOptions("odd", str(folder), "cpu", "int8", 1))
    assert reason in str(refused.value)
    known = diagnose(str(refused.value))
    assert known is not None
    assert known.anchor == "model-files-do-not-fit"


def test_without_a_preprocessor_a_model_of_128_mel_bins_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_demo(tmp_path / "model", without("preprocessor_config.json"))
    check_files(folder)  # 80 mel bins are the default
    monkeypatch.setattr("workers.whisper.model_check.read_shape", lambda path: ModelShape(128, 51866, 4, 20))
    with pytest.raises(RuntimeError, match="is missing, which means 80 mel bins, but the model has 128"):
        check_files(folder)


def test_a_damaged_tokenizer_is_refused(tmp_path: Path) -> None:
    folder = copy_demo(tmp_path / "model")
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(RuntimeError, match=r"tokenizer.json is damaged"):
        check_files(folder)


def as_text(folder: Path) -> None:
    """The vocabulary in the form of older converters."""
    tokens = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    (folder / "vocabulary.json").unlink()
    (folder / "vocabulary.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")


@pytest.mark.parametrize("edits", [(without_timestamps(),), (as_text,), (without("config.json"),)])
def test_other_forms_of_the_files_are_accepted(tmp_path: Path, edits: tuple[Edit, ...]) -> None:
    check_files(copy_demo(tmp_path / "model", *edits))


@pytest.mark.parametrize("length", [0, 3, 4000, 200_000])
def test_a_damaged_model_is_left_to_ctranslate2(tmp_path: Path, length: int) -> None:
    folder = copy_demo(tmp_path / "model")
    weights = folder / "model.bin"
    weights.write_bytes(weights.read_bytes()[:length])
    assert read_shape(weights) is None
    check_files(folder)


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (with_alignment_heads(None), "names no alignment_heads"),
        (
            with_json("config.json", lambda config: config | {"alignment_heads": []}),
            "names no alignment_heads",
        ),
        (without("config.json"), "names no alignment_heads"),
        (with_alignment_heads([[1, 0], [9, 9]]), "names heads that the model lacks"),
        (with_alignment_heads([[1, 4]]), "names heads that the model lacks"),
        (with_alignment_heads(["1", 0]), "names heads that the model lacks"),
    ],
)
def test_models_without_word_times(tmp_path: Path, edit: Edit, reason: str) -> None:
    note = missing_word_times(copy_demo(tmp_path / "model", edit))
    assert note is not None
    assert reason in note
    known = diagnose(note)
    assert known is not None
    assert known.anchor == "no-word-times"
