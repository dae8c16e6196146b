"""The voices in the clips of jobs, and those that clients know by name.

Embeddings of voices are biometric: they are deleted with their job, and nothing logs them or sends them to
clients. The functions run in a transaction of the caller.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import known_speakers, voices
from app.jobs.job import Job
from app.transcript.speakers.labelling import KnownSpeaker
from workers.messages import Span

_FLOATS = "<f4"


async def read_voices(connection: AsyncConnection, job: Job) -> dict[Span, bytes]:
    """The voices in each clip, from `pack_voices`, by the clip's span, in order. About 2.5 MB an hour."""
    query = sa.select(voices.c.start, voices.c.end, voices.c.content).where(voices.c.job_number == job.number)
    rows = await connection.execute(query.order_by(voices.c.start))
    return {(row.start, row.end): bytes(row.content) for row in rows}


async def add_voices(connection: AsyncConnection, job: Job, content: Mapping[Span, bytes]) -> None:
    """Store the voices in a job's clips."""
    rows = [
        {"job_number": job.number, "start": start, "end": end, "content": packed}
        for (start, end), packed in content.items()
    ]
    if rows:
        await connection.execute(sa.insert(voices), rows)


async def drop_voices(connection: AsyncConnection, job: Job) -> None:
    """Delete the voices in a job's clips."""
    await connection.execute(sa.delete(voices).where(voices.c.job_number == job.number))


async def move_voices(connection: AsyncConnection, job: Job, to: Job | None) -> None:
    """Give the voices in a job's clips to another job instead of its own ones; to none: delete them."""
    if to is None:
        await drop_voices(connection, job)
        return
    of_job = voices.c.job_number == job.number
    if await connection.scalar(sa.select(sa.exists().where(of_job))):
        await drop_voices(connection, to)
        await connection.execute(sa.update(voices).where(of_job).values(job_number=to.number))


async def add_known_speakers(connection: AsyncConnection, job: Job, known: Sequence[KnownSpeaker]) -> None:
    """Store the voices that the client knows."""
    rows = [
        {
            "job_number": job.number,
            "position": position,
            "name": speaker.name,
            "embedding": speaker.embedding.astype(_FLOATS).tobytes(),
            "model": speaker.model,
        }
        for position, speaker in enumerate(known)
    ]
    if rows:
        await connection.execute(sa.insert(known_speakers), rows)


async def read_known_speakers(connection: AsyncConnection, job: Job) -> tuple[KnownSpeaker, ...]:
    """The voices that the client knows, in its order."""
    query = sa.select(known_speakers).where(known_speakers.c.job_number == job.number)
    rows = await connection.execute(query.order_by(known_speakers.c.position))
    return tuple(
        KnownSpeaker(row.name, np.frombuffer(row.embedding, _FLOATS).astype(np.float32), row.model)
        for row in rows
    )


async def drop_known_speakers(connection: AsyncConnection, job: Job) -> None:
    """Delete the voices that the client knows."""
    await connection.execute(sa.delete(known_speakers).where(known_speakers.c.job_number == job.number))
