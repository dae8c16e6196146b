"""Warnings about the recordings of jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Older jobs have none."""
    op.add_column("jobs", sa.Column("warnings", sa.JSON(none_as_null=True)))
