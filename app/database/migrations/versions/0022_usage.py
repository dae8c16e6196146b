"""How much audio was transcribed, by day, owner and model."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "usage",
        sa.Column("day", sa.String(10), primary_key=True),
        sa.Column("owner", sa.String(64), primary_key=True),
        sa.Column("model", sa.Text, primary_key=True),
        sa.Column("jobs", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
    )
