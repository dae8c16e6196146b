import pytest

from app.engines.oom_fallback import OomFallback
from app.known_errors import is_out_of_memory

ERROR = RuntimeError("CUDA failed with error out of memory")


@pytest.mark.parametrize(
    "error",
    [
        ERROR,
        MemoryError(),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED"),
        RuntimeError("mkl_malloc: failed to allocate memory"),
    ],
)
def test_memory_runs_out_in_many_words(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("the GPU is lost"), ValueError(), OSError(28, "No space left")]
)
def test_other_errors_are_not_about_memory(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_a_batch_is_halved_from_what_it_was_and_never_grows() -> None:
    ladder = OomFallback(8)
    limits = []
    for clips in (8, 4, 3, 1, 6):
        ladder.halve(clips, ERROR)
        limits.append(ladder.batch_limit)
    assert limits == [4, 2, 1, 1, 1]


def test_what_is_less_than_was_asked_for_is_said_in_one_line() -> None:
    ladder = OomFallback(8)
    assert ladder.explain() is None
    ladder.halve(8, ERROR)
    said = ladder.explain()
    assert said is not None
    assert said.startswith(
        "Memory was short, so batches of 4 instead of 8: CUDA failed with error out of memory"
    )
    assert "docs/trouble.md#gpu-out-of-memory" in said
    ladder.step_down("turbo", "float16", "int8_float16", ERROR)
    ladder.step_down("turbo", "float16", "int8", ERROR)
    said = ladder.explain()
    assert said is not None
    assert "batches of 4 instead of 8, turbo in int8 instead of float16:" in said
    assert "\n" not in said
    assert (ladder.compute_type("turbo", "float16"), ladder.compute_type("large", "float16")) == (
        "int8",
        "float16",
    )
