"""Finds the model that embeds voices while the service runs."""

from app.engines.speaker_model import find_speaker_model
from app.errors import SpeakerModelUnavailable
from workers.messages import SpeakerModel


class SpeakerModels:
    """The model that WHISPER_SPEAKER_MODEL names, as far as it is found."""

    def __init__(self, setting: str) -> None:
        self._found: SpeakerModel | SpeakerModelUnavailable
        try:
            self._found = find_speaker_model(setting)
        except SpeakerModelUnavailable as error:
            self._found = error

    def check(self) -> None:
        """Raise SpeakerModelUnavailable if the model was not found."""
        if isinstance(self._found, SpeakerModelUnavailable):
            raise self._found

    async def get(self) -> SpeakerModel:
        """The model, when it is found. Raises SpeakerModelUnavailable."""
        if isinstance(self._found, SpeakerModelUnavailable):
            raise self._found
        return self._found
