"""The ids of jobs and uploads, and the names of their files: `uuid4().hex`. All layers know them."""

import re

ID = re.compile(r"[0-9a-f]{32}")
