"""The endpoint for Prometheus."""

import asyncio
from collections.abc import Iterator

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from starlette.responses import Response

from app.api import metric_list
from app.api.errors import documented_errors
from app.api.metric_list import METRICS, PREFIX, Sources
from app.histogram import Histogram


def metric_routes(sources: Sources) -> APIRouter:
    router = APIRouter(tags=["service"])
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ServiceCollector(sources))

    @router.get(
        "/metrics",
        summary="What Prometheus reads",
        responses={
            200: {"content": {"text/plain": {"schema": {"type": "string"}}}},
            **documented_errors(401),
        },
        response_class=Response,
    )
    async def metrics() -> Response:
        """Counters since the start of the service, and its state now, in Prometheus' text format."""
        # Both wait a second at most, and only if the last figures are not recent.
        await asyncio.gather(sources.service.gpus.sample(), sources.service.folder.disk.free_bytes.sample())
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


class ServiceCollector(Collector):
    """Reads the counts of the service when Prometheus asks: whoever counts knows nothing of Prometheus."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """All metrics, in the order of `METRICS`."""
        for metric in METRICS:
            yield _family(metric, metric.read(self._sources))


def _family(metric: metric_list.Metric, value: metric_list.Samples | float | Histogram | None) -> Metric:
    """A metric with its values, as prometheus-client renders it."""
    name = PREFIX + metric.name
    if isinstance(value, Histogram):
        bounds = [*map(floatToGoString, value.bounds), "+Inf"]
        buckets = list(zip(bounds, value.cumulative, strict=True))
        return HistogramMetricFamily(name, metric.help, buckets, value.sum)
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(name, metric.help, labels=tuple(metric.labels))
    if isinstance(value, int | float):
        family.add_metric((), value)
    elif value is not None:
        for labels, number in value:
            family.add_metric(labels, number)
    return family
