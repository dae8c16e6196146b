"""What all endpoints share: requests, errors, keys, hosts, limits, forms."""
