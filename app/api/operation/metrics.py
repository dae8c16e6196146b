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
from app.server.siblings import Siblings
from app.telemetry.histogram import Histogram

_FAMILIES: Mapping[str, type[Any]] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


def metric_routes(texts: "MetricTexts") -> APIRouter:
    router = APIRouter(tags=["service"])

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
        return Response(await texts.of_all(), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router


class MetricTexts:
    """The metrics in Prometheus' text format, those of the sibling processes among them.

    With siblings, samples have the label `front_end`: the counters of a process begin anew with it, and a sum
    would seem to fall.
    """

    def __init__(self, sources: Sources, siblings: Siblings) -> None:
        self._sources = sources
        self._siblings = siblings

    async def of_all(self) -> str:
        """The metrics of all processes that answer."""
        own, others = await asyncio.gather(self.of_this_process(), self._siblings.ask_all("/metrics"))
        foreign = [answer.json() for answer in others.values()]
        parts = []
        for metric in METRICS:
            parts.append(own[metric.name])
            if not metric.is_shared:
                texts = (texts.get(metric.name, "") for texts in foreign)
                parts += [
                    line for text in texts for line in text.splitlines(True) if not line.startswith("#")
                ]
        return "".join(parts)

    async def of_this_process(self) -> dict[str, str]:
        """The text of each metric, by its name."""
        sources = self._sources
        # Each waits a second at most; for the first two, only if the last figures are not recent.
        await asyncio.gather(
            sources.service.fleet.gpus.sample(),
            sources.service.media.folder.disk.free_bytes.sample(),
            sources.jobs.store.refresh_counts(),
        )
        name = self._siblings.name if self._siblings.others else None
        texts = {}
        for metric in METRICS:
            collector = MetricCollector(metric, sources, None if metric.is_shared else name)
            texts[metric.name] = generate_latest(collector).decode()
            await asyncio.sleep(0)  # all together would hold the loop for 9 ms if there are 64 workers
        return texts


class MetricCollector(Collector):
    """Reads a metric when Prometheus asks: whoever counts knows nothing of Prometheus."""

    def __init__(self, metric: metric_list.Metric, sources: Sources, front_end: str | None = None) -> None:
        """`front_end`: the label of all samples, if there are those of other processes."""
        self._metric = metric
        self._sources = sources
        self._beside = {} if front_end is None else {"front_end": front_end}

    def collect(self) -> Iterator[Metric]:
        """The metric with its values."""
        yield _family(self._metric, self._metric.read(self._sources), self._beside)


def _family(
    metric: metric_list.Metric,
    value: metric_list.Samples | float | Histogram | None,
    beside: Mapping[str, str],
) -> Metric:
    """A metric with its values, as prometheus-client renders it. `beside`: further labels of all samples."""
    name = PREFIX + metric.name
    family: Any = _FAMILIES[metric.kind](name, metric.help, labels=(*metric.labels, *beside))
    if isinstance(value, int | float | Histogram):
        value = [((), value)]
    for labels, number in value or ():
        labels = (*labels, *beside.values())
        if isinstance(number, Histogram):
            bounds = [*map(floatToGoString, number.bounds), "+Inf"]
            family.add_metric(labels, list(zip(bounds, number.cumulative, strict=True)), number.sum)
        else:
            family.add_metric(labels, number)
    return cast(Metric, family)
