import pytest

from workers.whisper.compute_types import choose, smaller

AMPERE = {"float32", "float16", "bfloat16", "int8", "int8_float32", "int8_float16", "int8_bfloat16"}
PASCAL = {"float32", "int8", "int8_float32"}  # no fast float16
X86 = {"float32", "int16", "int8", "int8_float32"}


def chain(largest: str, device: str, supported: set[str]) -> list[str]:
    types = [largest]
    while next_smaller := smaller(types[-1], device, supported):
        types.append(next_smaller)
    return types


@pytest.mark.parametrize(
    ("largest", "device", "supported", "smaller_ones"),
    [
        ("float32", "cuda", AMPERE, ["float16", "int8_float16", "int8"]),
        ("bfloat16", "cuda", AMPERE, ["int8_bfloat16", "int8"]),
        ("int8_float32", "cuda", AMPERE, ["int8_float16", "int8"]),
        ("float32", "cuda", PASCAL, ["int8"]),
        ("int8", "cuda", AMPERE, []),
        ("float32", "cpu", X86, ["int8_float32", "int8"]),
        ("int16", "cpu", X86, ["int8_float32", "int8"]),
        ("float32", "cpu", {"float32"}, []),
    ],
)
def test_smaller_types(largest: str, device: str, supported: set[str], smaller_ones: list[str]) -> None:
    assert chain(largest, device, supported) == [largest, *smaller_ones]


@pytest.mark.parametrize(
    ("requested", "device", "supported", "safe", "chosen"),
    [
        ("auto", "cuda", AMPERE, False, "float16"),
        ("auto", "cuda", PASCAL, False, "auto"),
        ("auto", "cpu", X86, False, "int8"),
        ("auto", "cuda", AMPERE, True, "int8_float16"),
        ("auto", "cuda", PASCAL, True, "int8"),
        ("auto", "cpu", {"float32"}, True, "default"),
        ("float32", "cuda", AMPERE, True, "float32"),
        ("default", "cpu", X86, False, "default"),
    ],
)
def test_the_meaning_of_auto(
    requested: str, device: str, supported: set[str], safe: bool, chosen: str
) -> None:
    assert choose(requested, device, supported, safe=safe) == chosen
