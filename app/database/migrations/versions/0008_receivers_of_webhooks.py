"""The owner and the host of each webhook. Those of waiting ones stay empty: they share one limit."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("owner", sa.String(64), nullable=False, server_default=""))
    op.add_column("deliveries", sa.Column("host", sa.Text(), nullable=False, server_default=""))
