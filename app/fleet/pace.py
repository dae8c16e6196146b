"""How fast each slot is, and when it will be free: learned from the batches that it has done. Pure."""

_WEIGHT = 0.3  # of the last batch, against all before it: some batches have to be heard twice


class Paces:
    """For each slot, its time for a batch as a multiple of what was expected of it."""

    def __init__(self, slots: int) -> None:
        self._paces: list[float | None] = [None] * slots
        self._in_hand: dict[int, tuple[float, float]] = {}  # when it began, and how long it was to take

    def begin(self, slot: int, expected: float, now: float) -> None:
        """A slot has begun a batch that is expected to take so many seconds."""
        self._in_hand[slot] = (now, expected)

    def end(self, slot: int, now: float) -> None:
        """The slot has done it."""
        began, expected = self._in_hand.pop(slot)
        seen = (now - began) / expected
        before = self._paces[slot]
        self._paces[slot] = seen if before is None else before + _WEIGHT * (seen - before)

    def give_up(self, slot: int) -> None:
        """The batch came to nothing: that says nothing about the pace."""
        self._in_hand.pop(slot, None)

    def pace(self, slot: int) -> float:
        """That of a slot which has not done anything yet is the mean of the others'."""
        pace = self._paces[slot]
        if pace is not None:
            return pace
        known = [pace for pace in self._paces if pace is not None]
        return sum(known) / len(known) if known else 1.0

    def free_in(self, slot: int, now: float) -> float:
        """In how many seconds a slot will be free. The longer it is overdue, the longer it may still take."""
        if slot not in self._in_hand:
            return 0.0
        began, expected = self._in_hand[slot]
        return abs(began + expected * self.pace(slot) - now)
