"""Which files are recordings, by the suffix of their names."""

from pathlib import PurePath

_AUDIO = (
    ".3ga .aac .ac3 .aif .aifc .aiff .amr .ape .au .caf .dts .eac3 .flac .gsm .m4a .m4b .mka .mp2 .mp3 .mpc "
    ".oga .ogg .opus .ra .spx .tak .tta .voc .w64 .wav .weba .wma .wv"
)
_VIDEO = (
    ".3g2 .3gp .asf .avi .divx .dv .f4v .flv .m2ts .m2v .m4v .mkv .mov .mp4 .mpeg .mpg .mts .mxf .nut .ogm "
    ".ogv .rm .rmvb .ts .vob .webm .wmv .wtv"
)
SUFFIXES = frozenset((*_AUDIO.split(), *_VIDEO.split()))


def is_recording(path: PurePath) -> bool:
    """Whether a file in a folder is taken for a recording. Hidden files are not."""
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
