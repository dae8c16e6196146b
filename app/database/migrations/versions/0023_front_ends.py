"""Several server processes: their leases, which of them runs a job, and which versions may read this."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("front_end", sa.String(64)))
    op.add_column("jobs", sa.Column("epoch", sa.BigInteger))
    op.create_table(
        "front_ends",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("epoch", sa.BigInteger, nullable=False, unique=True),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("boot_id", sa.String(40), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_table("readers", sa.Column("oldest", sa.String(32), primary_key=True))
