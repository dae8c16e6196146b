"""Errors cross processes, with all that they say."""

import pickle

import pytest

from app.errors import Fault, ProcessCrashed, ProcessLost, UnknownJob, UploadStalled, WhisperfleetError


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
