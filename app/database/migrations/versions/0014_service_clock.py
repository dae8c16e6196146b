"""The time of service, by which jobs, uploads and links expire, and webhooks are sent again."""

import math
import time

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Begin with the newest change of a job: the wall clock may be wrong, and an old backup has old jobs."""
    clock = op.create_table(
        "service_clock",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("wall_time", sa.Float, nullable=False),
    )
    changed = sa.text("SELECT max(coalesce(corrected_at, finished_at, created_at)) FROM jobs")
    begin = min(time.time(), op.get_bind().scalar(changed) or math.inf)
    op.bulk_insert(clock, [{"id": 1, "time": begin, "wall_time": begin}])
    op.add_column("jobs", sa.Column("retained_since", sa.Float))
    op.execute("UPDATE jobs SET retained_since = coalesce(corrected_at, finished_at)")
    for table, column in (("jobs", "retained_since"), ("deliveries", "next_at")):
        later = sa.text(f"UPDATE {table} SET {column} = :begin WHERE {column} > :begin")
        op.execute(later.bindparams(begin=begin))
