"""Damages files as broken disks, aborted transfers and attackers do. A seed always gives the same damage."""

import random
from collections.abc import Callable

HEADER_BYTES = 512
NASTY = (0, 1, 0x7F, 0x80, 0xFF)
NASTY_WORDS = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0)

Damage = Callable[[bytearray, random.Random], bytearray]


def _flip_bits(data: bytearray, dice: random.Random) -> bytearray:
    for _ in range(dice.choice((1, 8, 64))):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return data


def _replace_bytes(data: bytearray, dice: random.Random) -> bytearray:
    for _ in range(dice.choice((1, 16, 256))):
        data[dice.randrange(len(data))] = dice.choice((*NASTY, dice.randrange(256)))
    return data


def _swap_bytes(data: bytearray, dice: random.Random) -> bytearray:
    for _ in range(dice.choice((1, 16))):
        one, other = dice.randrange(len(data)), dice.randrange(len(data))
        data[one], data[other] = data[other], data[one]
    return data


def _break_header(data: bytearray, dice: random.Random) -> bytearray:
    for _ in range(dice.choice((1, 4))):
        at = dice.randrange(min(HEADER_BYTES, len(data)))
        word = dice.choice(NASTY_WORDS)
        data[at : at + 4] = word.to_bytes(4, dice.choice(("big", "little")))
    return data


def _cut(data: bytearray, dice: random.Random) -> bytearray:
    return data[: dice.randrange(1, len(data))]


def _drop(data: bytearray, dice: random.Random) -> bytearray:
    start, end = _span(data, dice)
    return data[:start] + data[end:]


def _insert(data: bytearray, dice: random.Random) -> bytearray:
    at = dice.randrange(len(data))
    return data[:at] + dice.randbytes(dice.choice((1, 100, 10_000))) + data[at:]


def _repeat(data: bytearray, dice: random.Random) -> bytearray:
    start, end = _span(data, dice)
    return data[:end] + data[start:end] * dice.choice((1, 5)) + data[end:]


def _blank(data: bytearray, dice: random.Random) -> bytearray:
    start, end = _span(data, dice)
    data[start:end] = bytes([dice.choice(NASTY)]) * (end - start)
    return data


def _span(data: bytearray, dice: random.Random) -> tuple[int, int]:
    start = dice.randrange(len(data))
    return start, min(len(data), start + dice.choice((4, 100, 4000, 40_000)))


DAMAGES: tuple[Damage, ...] = (
    _flip_bits,
    _replace_bytes,
    _swap_bytes,
    _break_header,
    _cut,
    _drop,
    _insert,
    _repeat,
    _blank,
)


def damaged(content: bytes, seed: int) -> bytes:
    """`content` with one to three kinds of damage."""
    dice = random.Random(seed)
    data = bytearray(content)
    for damage in dice.sample(DAMAGES, dice.choice((1, 1, 2, 3))):
        data = damage(data, dice)
        if not data:
            return content[:1]
    return bytes(data)
