"""Smaller batches and smaller compute types when memory runs out."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engines.oom_fallback import OomFallback
from tests.event_loop import Clock
from workers.causes import Cause, cause_of

ERROR = RuntimeError("CUDA failed with error out of memory")


CAUSES: dict[Cause, Sequence[Exception]] = {
    Cause.MEMORY: [
        ERROR,
        MemoryError(),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_ALLOC_FAILED"),
        RuntimeError("mkl_malloc: failed to allocate memory"),
    ],
    Cause.DEVICE: [
        RuntimeError("CUDA failed with error an illegal memory access was encountered"),
        RuntimeError("CUDA failed with error unspecified launch failure"),
        RuntimeError("CUDA failed with error device-side assert triggered"),
        RuntimeError("CUDA failed with error uncorrectable ECC error encountered"),
        RuntimeError("CUDA failed with error no kernel image is available for execution on the device"),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_EXECUTION_FAILED"),
        RuntimeError("cuBLAS failed with status CUBLAS_STATUS_INTERNAL_ERROR"),
        RuntimeError("parallel_for failed: cudaErrorIllegalAddress: an illegal memory access"),
        RuntimeError("transform: failed to synchronize: device lost"),
        RuntimeError("GPU 0 has fallen off the bus"),
        RuntimeError("the GPU is lost"),
    ],
    Cause.TASK: [RuntimeError("no such token"), ValueError("device"), OSError(28, "No space left")],
}


@pytest.mark.parametrize("cause", Cause)
def test_the_cause_of_an_error_is_known_by_its_words(cause: Cause) -> None:
    assert {repr(error): cause_of(error) for error in CAUSES[cause]} == dict.fromkeys(
        map(repr, CAUSES[cause]), cause
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_limit_is_half_the_batch_that_failed(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    limits = []
    for clips in (8, 4, 3, 1, 6):
        fallback.halve(clips, 5, ERROR)
        limits.append(fallback.batch_limit())
    assert limits == [4, 2, 1, 1, 1]


def test_a_limit_is_raised_again_after_a_while(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    for clips in (8, 4):
        fallback.halve(clips, 5, ERROR)
    limits = []
    for clock.now in (59, 60, 119, 120, 180):
        limits.append(fallback.batch_limit())
    assert limits == [2, 4, 4, 8, 8]
    assert fallback.explain() is None


def test_a_limit_that_is_raised_too_early_waits_twice_as_long_each_time(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    fallback.halve(8, 5, ERROR)
    attempts = []
    while clock.now < 30_000:
        clock.now += 1
        if fallback.batch_limit() == 8:
            attempts.append(clock.now)
            fallback.halve(8, 5, ERROR)
            assert fallback.batch_limit() == 4
    waits = [after - before for before, after in pairwise([0, *attempts])]
    assert waits[:7] == [60, 120, 240, 480, 960, 1920, 3600]
    assert set(waits[7:]) == {3600}


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 20)), max_size=20), st.integers(1, 20))
def test_a_limit_never_depends_on_wider_searches(failures: list[tuple[int, int]], beams: int) -> None:
    narrower, fallback = OomFallback(8, Clock()), OomFallback(8, Clock())
    for clips, width in failures:
        fallback.halve(clips, width, ERROR)
        if width <= beams:
            narrower.halve(clips, width, ERROR)
    assert 1 <= fallback.batch_limit(beams) == narrower.batch_limit(beams) <= 8


def test_a_wide_search_has_smaller_batches_from_the_start(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    assert [fallback.batch_limit(beams) for beams in (1, 5, 6, 10, 20)] == [8, 8, 6, 4, 2]
    assert OomFallback(2, clock).batch_limit(20) == 1


def test_the_explanation_has_all_changes_in_one_line(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    assert fallback.explain() is None
    fallback.halve(8, 5, ERROR)
    explanation = fallback.explain()
    assert explanation is not None
    assert explanation.startswith(
        "Memory was short, so batches of 4 instead of 8: CUDA failed with error out of memory"
    )
    assert "docs/trouble.md#gpu-out-of-memory" in explanation
    fallback.step_down("turbo", "float16", "float16", "int8_float16", ERROR)
    fallback.step_down("turbo", "float16", "int8_float16", "int8", ERROR)
    fallback.halve(2, 20, ERROR)
    explanation = fallback.explain()
    assert explanation is not None
    changes = "batches of 4 instead of 8, batches of 1 instead of 2 with 20 beams, turbo in int8 instead of"
    assert f"{changes} float16:" in explanation
    assert "\n" not in explanation
    assert (fallback.compute_type("turbo", "float16"), fallback.compute_type("large", "float16")) == (
        "int8",
        "float16",
    )


def test_the_compute_type_of_the_settings_is_tried_again_after_a_while(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    held: dict[str, str] = {}

    def restart() -> str:
        held["turbo"] = fallback.compute_type("turbo", "float16")
        fallback.loaded("turbo", held["turbo"])
        return held["turbo"]

    fallback.step_down("turbo", "float16", "float16", "int8", ERROR)
    assert (restart(), fallback.wants_restart(held)) == ("int8", False)
    clock.now = 600
    assert fallback.wants_restart(held)
    assert (restart(), fallback.wants_restart(held), fallback.explain(held)) == ("float16", False, None)
    fallback.step_down("turbo", "float16", "float16", "int8", ERROR)  # it was too early
    clock.now = 600 + 1199
    assert (restart(), fallback.wants_restart(held)) == ("int8", False)
    clock.now = 600 + 1200
    assert (fallback.wants_restart(held), restart()) == (True, "float16")


def test_a_model_that_is_not_in_memory_wants_no_restart(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    fallback.step_down("large", "float16", "float16", "int8", ERROR)
    assert "large in int8" in str(fallback.explain({"turbo": "float16"}))
    clock.now = 600
    assert not fallback.wants_restart({"turbo": "float16"})
    assert fallback.explain({"turbo": "float16"}) is None
    assert fallback.compute_type("large", "float16") == "float16"
    assert fallback.wants_restart({"turbo": "float16", "large": "int8"})


def test_a_load_that_ends_when_a_larger_type_may_fit_again_had_the_smaller_one(clock: Clock) -> None:
    fallback = OomFallback(8, clock)
    fallback.step_down("turbo", "float16", "float16", "int8", ERROR)
    clock.now = 599
    compute_type = fallback.compute_type("turbo", "float16")
    clock.now = 601
    fallback.loaded("turbo", compute_type)
    assert fallback.wants_restart({"turbo": compute_type})
    assert "turbo in int8" in str(fallback.explain({"turbo": compute_type}))
