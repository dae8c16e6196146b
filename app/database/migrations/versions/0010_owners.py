"""Links that are shared, who corrected by one, and names of owners instead of the digests of their keys."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """The name of an owner without one is `app.common.owners.unnamed_owner`."""
    for table in ("jobs", "uploads", "deliveries"):
        op.execute(f"UPDATE {table} SET owner = 'key-' || substr(owner, 1, 16) WHERE length(owner) = 64")
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_index("jobs_by_owner", "jobs", ["owner", "number"])
    op.add_column("revisions", sa.Column("by_link", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "shared_links",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("token_digest", sa.String(64), nullable=False, unique=True),
        sa.Column("job_number", number, sa.ForeignKey("jobs.number", ondelete="CASCADE"), nullable=False),
        sa.Column("may_correct", sa.Boolean, nullable=False),
        sa.Column("has_audio", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
    )
    op.create_index("ix_shared_links_job_number", "shared_links", ["job_number"])
