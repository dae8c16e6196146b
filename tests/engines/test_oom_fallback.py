"""Smaller batches and smaller compute types when memory runs out."""

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
def test_out_of_memory_errors_of_all_libraries_are_known(error: Exception) -> None:
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("the GPU is lost"), ValueError(), OSError(28, "No space left")]
)
def test_other_errors_are_not_about_memory(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_the_limit_is_half_the_batch_that_failed_and_never_grows() -> None:
    fallback = OomFallback(8)
    limits = []
    for clips in (8, 4, 3, 1, 6):
        fallback.halve(clips, ERROR)
        limits.append(fallback.batch_limit)
    assert limits == [4, 2, 1, 1, 1]


def test_the_explanation_has_all_changes_in_one_line() -> None:
    fallback = OomFallback(8)
    assert fallback.explain() is None
    fallback.halve(8, ERROR)
    explanation = fallback.explain()
    assert explanation is not None
    assert explanation.startswith(
        "Memory was short, so batches of 4 instead of 8: CUDA failed with error out of memory"
    )
    assert "docs/trouble.md#gpu-out-of-memory" in explanation
    fallback.step_down("turbo", "float16", "int8_float16", ERROR)
    fallback.step_down("turbo", "float16", "int8", ERROR)
    explanation = fallback.explain()
    assert explanation is not None
    assert "batches of 4 instead of 8, turbo in int8 instead of float16:" in explanation
    assert "\n" not in explanation
    assert (fallback.compute_type("turbo", "float16"), fallback.compute_type("large", "float16")) == (
        "int8",
        "float16",
    )
