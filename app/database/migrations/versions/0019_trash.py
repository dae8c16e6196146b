"""The trash: since when a job is in it, as a time of service."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("trashed_at", sa.Float))
    where = sa.text("trashed_at IS NOT NULL")
    columns = ["owner", "trashed_at"]
    op.create_index("jobs_by_trash", "jobs", columns, sqlite_where=where, postgresql_where=where)
