"""Names and terms of owners, and of jobs as they were submitted."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("has_terms", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "terms",
        sa.Column("owner", sa.String(64), primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )
    number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    job = sa.ForeignKey("jobs.number", ondelete="CASCADE")
    op.create_table(
        "job_terms",
        sa.Column("job_number", number, job, primary_key=True),
        sa.Column("content", sa.Text, nullable=False),
    )
