"""The cluster that the tests of a module share."""

from collections.abc import Iterator

import pytest

from tests.cluster.clusters import RayCluster, new_cluster


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    """A Ray cluster with a token: a head without resources, and two nodes of two CPUs each."""
    with new_cluster() as cluster:
        yield cluster
