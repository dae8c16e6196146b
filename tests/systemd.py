"""The machine's systemd, which checks units without running them."""

import shutil

ANALYZE = shutil.which("systemd-analyze")
MISSING = "there is no systemd-analyze. Install it (Debian: `apt-get install systemd`)"
