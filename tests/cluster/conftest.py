"""The cluster that the tests share: to start one takes longer than most of them."""

from collections.abc import Iterator

import pytest

from tests.cluster.clusters import RayCluster, environment, running_cluster


@pytest.fixture(scope="session")
def shared_cluster() -> Iterator[RayCluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ray_cluster(shared_cluster: RayCluster) -> Iterator[RayCluster]:
    """A Ray cluster with a token: a head without resources, and two nodes of two CPUs each.

    The modules share it. Each may kill and add nodes.
    """
    with environment(shared_cluster.environment):
        shared_cluster.mend()
        yield shared_cluster
