"""The parts that all endpoints share: requests, errors, keys, hosts, limits, forms."""
