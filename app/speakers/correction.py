"""What a client knows of the speakers of a transcript that is complete. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.speakers.labelling import SpeakerCount


@dataclass(frozen=True, slots=True)
class SpeakerCorrection:
    """What to change about the speakers of a transcript. `same` and `different` as in `relabelled`."""

    count: SpeakerCount | None = None
    same: tuple[tuple[str, ...], ...] = ()
    different: tuple[tuple[str, ...], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)  # of the speakers, once they are found: by label

    @property
    def needs_voices(self) -> bool:
        """Whether voices are compared anew: not to rename speakers."""
        return self.count is not None or bool(self.same or self.different)
