#!/bin/sh
# PyAV 18.1.0 (libavformat 62.12): WAV files of big-endian samples (RIFX) are read as if their samples were little-endian.
#
# FFmpeg knows RIFX and reads the numbers of its header as big-endian, and then takes the codec of RIFF for the samples:
# `pcm_s16le`. So 16, 24 and 32 bits and floats are noise, or silence, without an error; 8 bits are right. FFmpeg refuses A-law
# and mu-law in RIFX. libsndfile, which wrote these files here, reads all of them.
#
# Seen: each line below as it stands in `expected`. Exit 1 if that changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check av==18.1.0 soundfile==0.14.0 numpy==2.4.6 2>/dev/null

cat > "$folder/expected" <<'END'
av 18.1.0
PCM_U8: b'RIFX', libsndfile right, FFmpeg pcm_u8 right
PCM_16: b'RIFX', libsndfile right, FFmpeg pcm_s16le wrong, with the bytes of its samples swapped right
PCM_24: b'RIFX', libsndfile right, FFmpeg pcm_s24le wrong
PCM_32: b'RIFX', libsndfile right, FFmpeg pcm_s32le wrong
FLOAT: b'RIFX', libsndfile right, FFmpeg pcm_f32le wrong
ULAW: b'RIFX', libsndfile right, FFmpeg PatchWelcomeError
END
cd "$folder"
venv/bin/python - > seen <<'END'
import av
import numpy as np
import soundfile


def right(samples, tone):
    with np.errstate(all="ignore"):
        return "right" if np.corrcoef(samples, tone)[0, 1] > 0.99 else "wrong"


av.logging.set_level(None)
print("av", av.__version__)
tone = 0.25 * np.sin(np.arange(16_000) / 20)
for coding in ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "ULAW"):
    soundfile.write("talk.wav", tone, 16_000, coding, "BIG", "WAV")
    head = open("talk.wav", "rb").read(4)
    seen = f"{coding}: {head}, libsndfile {right(soundfile.read('talk.wav')[0], tone)}, FFmpeg "
    try:
        with av.open("talk.wav") as container:
            name = container.streams.audio[0].codec_context.name
            samples = np.concatenate([frame.to_ndarray()[0] for frame in container.decode(audio=0)])
        seen += f"{name} {right(samples.astype(float), tone)}"
        if coding == "PCM_16":
            seen += f", with the bytes of its samples swapped {right(samples.byteswap().astype(float), tone)}"
    except av.FFmpegError as error:
        seen += type(error).__name__
    print(seen)
END
cat seen
diff expected seen
