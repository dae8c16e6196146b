"""The environment of child processes: that of this process, without keys and secrets.

Media workers decode files that nobody trusts. A file that takes over its decoder must not find the service's
secrets there.
"""

import os
import re

_PREFIXES = ("WHISPER_", "OTEL_", "AWS_", "AZURE_", "GOOGLE_", "GCP_", "CLOUDSDK_", "SSH_")
# As the end of a part of the name: HF_TOKEN, HF_TOKEN_PATH, PGPASSWORD, MY_SECRETS_FILE, ….
_WORDS = re.compile(
    r"(TOKEN|KEY|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?(_|$)|(^|_)(PASS|PGPASSFILE|COOKIE|DSN)(_|$)"
)
_LOGIN = re.compile(r"://[^/\s]*@")  # of a database, a proxy, …


def is_secret(name: str, value: str) -> bool:
    """Whether a variable is one of the service's settings, or looks like a credential."""
    upper = name.upper()
    return upper.startswith(_PREFIXES) or bool(_WORDS.search(upper) or _LOGIN.search(value))


def hide_secrets() -> None:
    """Let no process that this one starts from now on inherit a secret variable.

    Changes the environment of the C library alone, which children inherit. This process still finds all of
    its variables in `os.environ`.
    """
    for name, value in list(os.environ.items()):
        if is_secret(name, value):
            os.unsetenv(name)
