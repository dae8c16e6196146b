"""The endpoint for Prometheus."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any, cast

from fastapi import APIRouter
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from starlette.responses import Response

from app.api.operation import metric_list
from app.api.operation.metric_list import METRICS, PREFIX, Sources
from app.server.errors import documented_errors
from app.telemetry.histogram import Histogram

_FAMILIES: Mapping[str, type[Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def metric_routes(sources: Sources) -> APIRouter:
    router = APIRouter(tags=["service"])
    collectors = [MetricCollector(metric, sources) for metric in METRICS]

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
        # Each waits a second at most; for the first two, only if the last figures are not recent.
        await asyncio.gather(
            sources.service.fleet.gpus.sample(),
            sources.service.media.folder.disk.free_bytes.sample(),
            sources.jobs.store.refresh_counts(),
        )
        parts = []
        for collector in collectors:
            parts.append(generate_latest(collector))
            await asyncio.sleep(0)  # all together would hold the loop for 9 ms if there are 64 workers
        return Response(b"".join(parts), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


class MetricCollector(Collector):
    """Reads a metric when Prometheus asks: whoever counts knows nothing of Prometheus."""

    def __init__(self, metric: metric_list.Metric, sources: Sources) -> None:
        self._metric = metric
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """The metric with its values."""
        yield _family(self._metric, self._metric.read(self._sources))


def _family(metric: metric_list.Metric, value: metric_list.Samples | float | Histogram | None) -> Metric:
    """A metric with its values, as prometheus-client renders it."""
    name = PREFIX + metric.name
    family: Any = _FAMILIES[metric.kind](name, metric.help, labels=tuple(metric.labels))
    if isinstance(value, int | float | Histogram):
        value = [((), value)]
    for labels, number in value or ():
        if isinstance(number, Histogram):
            bounds = [*map(floatToGoString, number.bounds), "+Inf"]
            family.add_metric(labels, list(zip(bounds, number.cumulative, strict=True)), number.sum)
        else:
            family.add_metric(labels, number)
    return cast(Metric, family)
