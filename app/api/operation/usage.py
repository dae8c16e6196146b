"""The endpoint that says how much was transcribed: for an owner, and for operators of all owners."""

import csv
import math
from datetime import date
from io import StringIO
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import JSONResponse, Response

from app.api.schemas import UsageList
from app.common.errors import InvalidInput
from app.intake.budgets import today
from app.jobs.service import JobService
from app.recording.service import TranscriptionService
from app.server.errors import documented_errors
from app.server.requests import client_of

MAX_ROWS = 10_000
BY = r"^(day|owner|model)(,(day|owner|model))*$"


def usage_routes(service: TranscriptionService, jobs: JobService) -> APIRouter:
    router = APIRouter(tags=["service"])

    @router.get(
        "/v1/usage",
        summary="Get how much was transcribed",
        response_model=UsageList,
        responses={
            200: {"content": {"text/csv": {"schema": {"type": "string"}}}},
            **documented_errors(400, 401, 503),
        },
    )
    async def list_usage(
        request: Request,
        first: Annotated[
            date | None, Query(alias="from", description="The first day; by default of the month.")
        ] = None,
        last: Annotated[date | None, Query(alias="to", description="The last day; by default today.")] = None,
        by: Annotated[str, Query(pattern=BY, description="What divides the sums.")] = "day,owner,model",
        format: Annotated[Literal["json", "csv"], Query()] = "json",
    ) -> Response:
        """Days are those of UTC. Operators see all owners. What was counted stays when jobs are deleted."""
        columns = by.split(",")
        until = last or date.fromisoformat(today())
        span = ((first or until.replace(day=1)).isoformat(), until.isoformat())
        client = client_of(request)
        rows = await jobs.usage(*span, columns, client.visible_owner, limit=MAX_ROWS + 1)
        if len(rows) > MAX_ROWS:
            raise InvalidInput(f"There are over {MAX_ROWS} rows: ask for fewer days or columns.", param="by")
        names = (*columns, "jobs", "minutes")
        found = [(*row[:-1], round(row.seconds / 60, 4)) for row in rows]
        if format == "csv":
            text = StringIO()
            csv.writer(text, lineterminator="\n").writerows([names, *found])
            return Response(text.getvalue(), media_type="text/csv")
        left_s = service.budgets.left(client.owner)
        return JSONResponse(
            {
                "object": "list",
                "from": span[0],
                "to": span[1],
                "data": [dict(zip(names, row, strict=True)) for row in found],
                "left_minutes": None if left_s == math.inf else round(left_s / 60, 2),
            }
        )

    return router
