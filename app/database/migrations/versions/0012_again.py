"""Jobs that transcribe the recording of another job again."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("parent", sa.String(40)))
    op.add_column("jobs", sa.Column("parent_revision", sa.Integer()))
    op.add_column("jobs", sa.Column("keep_corrections", sa.Boolean()))
    has_parent = sa.text("parent IS NOT NULL")
    op.create_index(
        "jobs_by_parent", "jobs", ["parent"], sqlite_where=has_parent, postgresql_where=has_parent
    )
