"""Options of subtitles: `auto` or a number, in every way that clients write them."""

import pytest
from pydantic import ValidationError

from app.api.audio.openai import TranscriptionForm
from app.api.http.forms import JobForm, JobSource, request_body
from app.common.options import FILE_OPTIONS, Options

RANGES = {
    "max_line_chars": (10, 200, "integer"),
    "max_lines": (1, 4, "integer"),
    "max_cps": (5, 100, "number"),
    "min_cue_s": (0.1, 5, "number"),
    "max_cue_s": (1, 30, "number"),
    "min_gap_s": (0, 1, "number"),
}


def refusal(**options: object) -> str:
    """The message about the only field that is refused."""
    with pytest.raises(ValidationError) as caught:
        Options.model_validate(options)
    [fault] = caught.value.errors()
    assert fault["loc"] == tuple(options)
    return fault["msg"]


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("value", ["auto", "Auto", " AUTO "])
def test_auto_in_any_case(name, value):
    assert Options.model_validate({name: value}) == Options()


@pytest.mark.parametrize(("name", "limits"), RANGES.items())
def test_a_number_or_its_text_within_the_range(name, limits):
    low, high, kind = limits
    for number in (low, high):
        for given in (number, str(number), f" {number} "):
            chosen = getattr(Options.model_validate({name: given}), name)
            assert chosen == number
            assert type(chosen) is (int if kind == "integer" else float)


@pytest.mark.parametrize(("name", "limits"), RANGES.items())
def test_what_is_no_such_number_is_refused_with_what_to_give(name, limits):
    low, high, _ = limits
    assert refusal(**{name: low - 1}) == f"Input should be greater than or equal to {low}, or `auto`"
    assert refusal(**{name: str(high + 1)}) == f"Input should be less than or equal to {high}, or `auto`"
    odd = [float("nan"), float("inf"), -float("inf"), "nan", "inf", "-inf", "1e999", "autos", "", "4,2"]
    for value in [*odd, None, [], {}, ["auto"]]:
        assert refusal(**{name: value}).endswith(", or `auto`")


@pytest.mark.parametrize("name", ["max_line_chars", "max_lines"])
def test_a_count_is_whole(name):
    assert "whole number" in refusal(**{name: "2.5"})


def test_frame_rates():
    for fps in (10, 23.976, 24, 25, 29.97, 30, 50, 59.94, 60, 120):
        assert Options(fps=fps).fps == Options.model_validate({"fps": str(fps)}).fps == fps
    assert Options().fps is Options.model_validate({"fps": " "}).fps is None
    for value in (9.9, 120.1, "nan", "inf", float("nan"), "film", "24000/1001", []):
        assert refusal(fps=value)


def test_start_offset():
    assert Options().start_offset_s == 0
    assert Options.model_validate({"start_offset_s": "0.25"}).start_offset_s == 0.25
    for value in (-0.01, 1.01, "nan", float("inf"), "auto"):
        assert refusal(start_offset_s=value)


def test_profiles():
    for name in ("netflix", "bbc", "broadcast", "social"):
        assert Options.model_validate({"profile": name}).profile == name
    assert Options().profile is Options.model_validate({"profile": ""}).profile is None
    assert refusal(profile="arte") == "Input should be 'netflix', 'bbc', 'broadcast' or 'social'"


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(profile="bbc", max_lines=1, max_cps=12.5, fps=23.976, min_gap_s=0, start_offset_s=0.1),
        Options(max_line_chars=42, max_lines=2, max_cps=20, min_cue_s=5 / 6, max_cue_s=7),
    ],
)
def test_json_keeps_what_was_chosen_and_what_was_not(options):
    assert Options.model_validate_json(options.model_dump_json()) == options


def properties(form):
    if form is JobSource:
        return JobSource.model_json_schema(mode="validation")["properties"]
    return request_body(form)["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]


@pytest.mark.parametrize("form", [TranscriptionForm, JobForm, JobSource])
def test_openapi_shows_auto_or_the_range(form):
    documented = properties(form)
    for name, (low, high, kind) in RANGES.items():
        assert documented[name]["default"] == "auto"
        assert documented[name]["anyOf"] == [
            {"enum": ["auto"], "type": "string"},
            {"type": kind, "minimum": low, "maximum": high},
        ]
    for name, limits in {"fps": (10, 120), "start_offset_s": (0, 1)}.items():
        kinds = documented[name].get("anyOf", [documented[name]])
        assert [(kind["minimum"], kind["maximum"]) for kind in kinds if kind["type"] == "number"] == [limits]
    kinds = documented["profile"].get("anyOf", [documented["profile"]])
    assert kinds[0]["enum"] == ["netflix", "bbc", "broadcast", "social"]
    assert documented.keys() > FILE_OPTIONS
