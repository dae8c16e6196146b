"""How often the whole service has ended in the middle of a job."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Not known of older jobs."""
    op.add_column("jobs", sa.Column("interruptions", sa.Integer, nullable=False, server_default="0"))
