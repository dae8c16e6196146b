"""Which changes invalidate stored clip results."""

from pathlib import Path

import pytest

from app.jobs.result_digest import _files, result_digest
from app.options import Options
from workers.messages import LoadOptions


def load_options(path: Path | str, compute_type: str = "int8", *, safe: bool = False) -> LoadOptions:
    return LoadOptions("demo", str(path), "cpu", compute_type, 1, safe=safe)


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
        result_digest(Options(language="de"), load_options(one)),
    }
    assert len(different) == 5


def test_the_digest_of_a_model_without_files_does_not_depend_on_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = set()
    for name in ("here", "there"):
        _files.cache_clear()
        monkeypatch.chdir(folder(tmp_path, name, name.encode()))
        seen.add(result_digest(Options(), load_options("")))
    assert len(seen) == 1
