"""The command line of the endurance benchmark."""

import pytest

from bench import endurance


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The parts that ran, in order."""
    names: list[str] = []

    def part(name: str) -> dict[str, float]:
        names.append(name)
        return {"figure": 1.0}

    for name in list(endurance.PARTS):
        monkeypatch.setitem(endurance.PARTS, name, lambda _, name=name: part(name))
    return names


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [([], ["upload", "recording", "polling"]), (["polling"], ["polling"])],
)
def test_all_parts_run_by_default(arguments: list[str], parts: list[str], ran: list[str]) -> None:
    endurance.main(arguments)
    assert ran == parts


def test_an_unknown_part_is_refused(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        endurance.main(["uploads"])
    assert "no such part: uploads" in capsys.readouterr().err
    assert ran == []
