"""The text of an item, clip by clip: what of it can be sent, and when. Pure.

Text that was sent is never sent again, and the text of a clip comes after that of the clip before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from app.common.errors import WhisperfleetError
from app.live.agreement import Agreement, rest_of, words_behind
from app.live.events import Completed, Failed, StreamOptions
from workers.messages import Segment


@dataclass(frozen=True, slots=True)
class Draft:
    """What a draft of open speech says. Positions are samples of the stream."""

    text: str | None  # None: it cannot be trusted
    until: int  # up to which it covers the stream
    said_until: int  # the end of the last speech in that


@dataclass(slots=True, eq=False)
class ClipText:
    """The text of one clip of an item."""

    agreement: Agreement = field(default_factory=Agreement)
    result: tuple[Segment, ...] | None = None  # of the stream: it replaces the drafts
    may_be_drafted: bool = True  # no draft of it has crashed a worker
    drafted_until: int = 0  # up to which the last draft covers the stream
    end: int = 0  # of the clip in the stream, once it is closed; drafts may have gone on behind it
    _sent: int = 0  # of the words that drafts agree on
    _is_sent: bool = False  # all of it that can be

    def add_draft(self, draft: Draft) -> None:
        """A draft covers more of the speech."""
        self.drafted_until = draft.until
        if draft.text is not None:
            self.agreement.add(draft.text, draft.until, draft.said_until)

    def sendable(self, following: "ClipText | None") -> tuple[str, int]:
        """The text that can be sent now, and the sample by which it was spoken. It counts as sent then.

        `following`: the next clip.
        """
        words = self.agreement.words
        if self.result is None:
            text = "".join(words[self._sent :])
            self._sent = len(words)
            return text, self.agreement.said_until
        if self._is_sent:
            return "", 0
        self._is_sent = True
        if following is not None:
            following._continue_after(self)
        end = self.result[-1].end if self.result else 0
        return rest_of(words[: self._sent], self._whole) or "", end

    @property
    def _whole(self) -> str:
        """The text of the result."""
        return "".join(segment.text for segment in self.result or ())

    def _continue_after(self, before: "ClipText") -> None:
        """The text of the clip before is known. Its drafts may have said the beginning of this one, too."""
        if before.agreement.said_until > before.end:
            sent = words_behind(before._whole, before.agreement.words[: before._sent])
            self.agreement.continue_after(sent)
            self._sent = len(sent)


@dataclass(slots=True, eq=False)
class Item:
    """A turn: the speech between two silences, or two commits. Positions are samples of the stream."""

    number: int
    start: int
    options: StreamOptions
    clips: list[ClipText] = field(default_factory=lambda: [ClipText()])  # the last one is open
    is_turn: bool = False  # that the service has found
    end: int | None = None  # once it is committed; no clip is open then
    committed_at: float = 0.0  # in the event loop's time
    language: str = ""
    has_sent: bool = False
    error: WhisperfleetError | None = None  # of a clip, or of the audio

    @property
    def is_done(self) -> bool:
        """Whether the item is committed, and all of its text is there."""
        return self.end is not None and all(clip.result is not None for clip in self.clips)

    def sendable(self) -> Iterator[tuple[str, int]]:
        """The text that can be sent now, in order, and by when it was spoken. It counts as sent then."""
        for clip, following in zip_longest(self.clips, self.clips[1:]):
            text, until = clip.sendable(following)
            text = text if self.has_sent else text.lstrip()
            if text.strip():
                yield text, until
            if clip.result is None:
                return

    def outcome(self) -> Completed | Failed:
        """The event that ends an item which is done."""
        assert self.end is not None
        if self.error is not None:
            return Failed(self.number, self.error)
        segments = tuple(segment for clip in self.clips for segment in clip.result or ())
        text = "".join(segment.text for segment in segments).strip()
        return Completed(self.number, text, segments, self.end - self.start, self.language)
