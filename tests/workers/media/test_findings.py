"""What is said of the problems of a recording."""

import pytest

from workers.media.findings import Findings


def test_a_place_says_how_much_of_it_could_not_be_decoded() -> None:
    findings = Findings()
    for second in range(10):
        findings.position_s = float(second)
        findings.damage(0.2)
    [warning] = findings.warnings()
    assert warning.message == "2.0 s could not be decoded at 0:00."
    assert (warning.start, warning.end) == (0.0, 9.2)


def test_times_that_sums_of_lengths_have_just_missed() -> None:
    findings = Findings()
    findings.note("cut_off", sum([0.1] * 100), 60.0)
    [warning] = findings.warnings()
    assert sum([0.1] * 100) < 10
    assert warning.start == pytest.approx(10)
    assert warning.message == "The file ends at 0:10 of 1:00."
