#!/bin/sh
# soundfile 0.14.0 with libsndfile 1.2.2: `read` fails for DWVW in AIFF, also for a file that it wrote itself.
#
# After each read of a file that can be sought, soundfile seeks to the place that it is at already ("Update read & write
# position"). libsndfile says of DWVW that it can be sought, and its seek then fails, so the read raises "Internal psf_fseek()
# failed", although all samples were decoded. Of G.721, libsndfile says that it cannot be sought, and the read works. A subclass
# whose `seekable` returns False reads DWVW as well.
#
# Seen: each line below as it stands in `expected`. Exit 1 if that changes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check soundfile==0.14.0 numpy==2.4.6 2>/dev/null

cat > "$folder/expected" <<'END'
soundfile 0.14.0, libsndfile 1.2.2
AIFF DWVW_16: seekable True, LibsndfileError: Internal psf_fseek() failed.; without seeks 16000 samples, all right
AIFF DWVW_24: seekable True, LibsndfileError: Internal psf_fseek() failed.; without seeks 16000 samples, all right
AU G721_32: seekable False, 16080 samples; without seeks 16080 samples, nearly right
END
cd "$folder"
venv/bin/python - > seen <<'END'
import numpy as np
import soundfile


class Forward(soundfile.SoundFile):
    def seekable(self):
        return False


print(f"soundfile {soundfile.__version__}, libsndfile {soundfile.__libsndfile_version__}")
tone = (8000 * np.sin(np.arange(16_000) / 20)).astype(np.int16)
for form, coding in (("AIFF", "DWVW_16"), ("AIFF", "DWVW_24"), ("AU", "G721_32")):
    soundfile.write("talk", tone, 16_000, coding, format=form)
    with soundfile.SoundFile("talk") as file:
        seekable = file.seekable()
        try:
            seen = f"{len(file.read(20_000, dtype='int16'))} samples"
        except soundfile.LibsndfileError as error:
            seen = f"LibsndfileError: {error}"
    with Forward("talk") as file:
        forward = file.read(20_000, dtype="int16")
    right = "all" if np.array_equal(forward, tone) else "nearly" if np.corrcoef(forward[:16_000], tone)[0, 1] > 0.99 else "not"
    print(f"{form} {coding}: seekable {seekable}, {seen}; without seeks {len(forward)} samples, {right} right")
END
cat seen
diff expected seen
