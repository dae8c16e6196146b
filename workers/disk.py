"""Error numbers of the operating system that mean a full disk."""

import errno

NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})  # EDQUOT: the user's quota is used up
