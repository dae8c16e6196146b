"""The demo model in this process, loaded once for the tests of a file."""

from collections.abc import Iterator

import pytest

from app.engines.model_files import DEMO_PATH
from workers import calls
from workers.messages import LoadOptions, WorkerInfo
from workers.whisper import worker as whisper


@pytest.fixture(scope="module")
def demo() -> Iterator[WorkerInfo]:
    loads, whisper._loads = whisper._loads, 0  # other tests of this process count theirs
    answer = calls.answer({}, whisper.load, LoadOptions("demo", str(DEMO_PATH), "cpu", "int8", 1))
    assert [part.name for part in answer.parts] == ["load model"]
    yield answer.result
    whisper.unload("demo")
    whisper._loads = loads
