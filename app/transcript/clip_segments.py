"""The segments that one clip adds to the transcript. The pipeline and jobs that still run share them."""

from app.options import Options
from app.transcript.chinese import LANGUAGES as CHINESE
from app.transcript.chinese import convert_segments
from app.transcript.timeline import ClipResult, merge
from workers.messages import Segment, Span


def clip_segments(clip: Span, result: ClipResult, options: Options) -> tuple[Segment, ...]:
    """The segments of a clip, in samples of the recording, in the script that the options ask for.

    The clips of a transcript do not overlap, so each is merged on its own.
    """
    segments = merge([(clip, result)])
    is_chinese_text = result.language in CHINESE and options.task == "transcribe"
    return convert_segments(segments, options.chinese) if is_chinese_text else segments
