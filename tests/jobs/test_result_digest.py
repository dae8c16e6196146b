"""Which changes invalidate stored clip results."""

from dataclasses import replace
from pathlib import Path

import pytest

from app.common.options import FILE_OPTIONS, SPEAKER_OPTIONS, Options
from app.jobs.running.result_digest import _files, result_digest
from workers.messages import LoadOptions


def load_options(
    path: Path | str, compute_type: str = "int8", *, safe: bool = False, min_context_s: float = 30
) -> LoadOptions:
    return LoadOptions("demo", str(path), "cpu", compute_type, 1, safe, min_context_s)


def folder(parent: Path, name: str, content: bytes) -> Path:
    path = parent / name
    path.mkdir()
    (path / "config.json").write_bytes(content)
    return path


def test_the_digest_depends_on_the_options_and_the_model_with_its_files(tmp_path: Path) -> None:
    one, same, other = (folder(tmp_path, name, name[:1].encode()) for name in ("a1", "a2", "b"))
    assert result_digest(Options(), load_options(one)) == result_digest(Options(), load_options(same))
    different = {
        result_digest(Options(), load_options(one)),
        result_digest(Options(), load_options(other)),
        result_digest(Options(), load_options(one, "float32")),
        result_digest(Options(), load_options(one, safe=True)),
        result_digest(Options(), load_options(one, min_context_s=10)),
        result_digest(Options(), load_options(one, min_context_s=5)),
        result_digest(Options(language="de"), load_options(one)),
    }
    assert len(different) == 7


def test_with_torch_the_digest_depends_on_its_version_and_with_ctranslate2_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = load_options("")
    digests = set()
    for number in ("2.13.0+cpu", "2.14.0+cu126"):
        monkeypatch.setattr(
            "app.jobs.running.result_digest.version", lambda name, at=number: at if name == "torch" else "1"
        )
        digests |= {result_digest(Options(), options) for options in (usual, replace(usual, backend="torch"))}
    assert len(digests) == 3


OTHER_VALUES = {
    "task": "translate", "language": "de", "languages": "de,en", "multilingual": True, "prompt": "Hallo",
    "hotwords": "Zürich",
    "temperature": 0.5, "beam_size": 3, "word_timestamps": True, "vad_threshold": 0.4, "min_speech_ms": 1,
    "min_silence_ms": 2, "speech_pad_ms": 3, "profile": "bbc", "max_line_chars": 42, "max_lines": 1,
    "max_cps": 15, "min_cue_s": 1, "max_cue_s": 5, "min_gap_s": 0.5, "fps": 25, "start_offset_s": 0.5,
    "diarize": True, "num_speakers": 2, "min_speakers": 2, "max_speakers": 3, "speaker_names": "Ann, Bob",
    "channels": "separate",
    "audio_track": "es", "start": 1.5, "end": 60, "times": True, "speakers": False, "numbered": True,
    "mark_pauses_s": 2,
    "word_level": True, "srt_bom": True, "srt_crlf": True, "chinese": "simplified", "allow_partial": True,
}  # fmt: skip


def test_every_option_is_tested_below() -> None:
    assert OTHER_VALUES.keys() == Options.model_fields.keys()


def test_the_digest_does_not_depend_on_options_of_subtitles_and_speakers() -> None:
    usual = result_digest(Options(), load_options(""))
    for option, value in OTHER_VALUES.items():
        options = Options.model_validate({option: value})
        assert options != Options()
        same = result_digest(options, load_options("")) == usual
        assert same == (option in FILE_OPTIONS | SPEAKER_OPTIONS), option


def test_the_digest_of_a_model_without_files_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for name in ("here", "there"):
        _files.cache_clear()
        monkeypatch.chdir(folder(tmp_path, name, name.encode()))
        seen.add(result_digest(Options(), load_options("")))
    assert len(seen) == 1
