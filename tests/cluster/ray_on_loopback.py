"""The program `ray` for tests: with `--node-ip-address=127.0.0.1` it listens there alone.

Ray's own takes another address of the machine instead, and then listens on all of them.
"""

import sys

from ray._private import services
from ray.scripts.scripts import main

if __name__ == "__main__":
    services.resolve_ip_for_localhost = lambda host: host
    sys.argv[0] = "ray"
    main()
