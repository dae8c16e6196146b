"""Errors cross processes, with all that they say; which of them a recording causes."""

import pickle
import re
from pathlib import Path

import pytest

from app.common.errors import (
    FAILURE_CODES,
    RECORDING_AT_FAULT,
    Fault,
    ProcessCrashed,
    ProcessLost,
    UnknownJob,
    UploadStalled,
    WhisperfleetError,
)


@pytest.mark.parametrize(
    "error",
    [
        UnknownJob("There is no job.", param="after", code="gone"),
        UploadStalled("It stalled.", "Send it again.", code="upload_stalled"),
        ProcessCrashed("process 7 was killed by signal 9 (SIGKILL)", exit_status=-9),
        ProcessCrashed("process 7 was killed by signal 11 (SIGSEGV)", exit_status=-11, fault=Fault.OWN),
        ProcessLost("Its node is gone."),
    ],
)
def test_an_error_is_the_same_after_pickling(error: WhisperfleetError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (copy.args, vars(copy)) == (error.args, vars(error))


def test_a_file_that_is_refused_is_at_fault() -> None:
    """Or else a watch would send it again and again."""
    refusals = (Path(__file__).parents[1] / "workers" / "media" / "refusal.py").read_text("utf-8")
    codes = set(re.findall(r'RecordingRefused\(\s*"(\w+)"', refusals))
    assert len(codes) > 9
    assert codes <= RECORDING_AT_FAULT
    assert not RECORDING_AT_FAULT & {
        *FAILURE_CODES.values(),
        "internal_error",
        "file_gone",
        "clip_interrupted",
    }
