"""What lives beside a transcript: corrections, published clips, peaks; resumable uploads and signed links."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _job_number() -> sa.Column[int]:
    return sa.Column("job_number", NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("revision", sa.Integer, nullable=False, server_default="0"))
    op.add_column("clips", sa.Column("published", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "revisions",
        _job_number(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("changed", sa.Integer, nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table("peaks", _job_number(), sa.Column("content", sa.LargeBinary, nullable=False))
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("filename", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.Column("unchecked_from", sa.BigInteger),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("expires_at", sa.Float, nullable=False),
        sa.Column("job_id", sa.String(40)),
    )
    op.create_index("uploads_by_time", "uploads", ["expires_at"])
    op.create_table(
        "secrets",
        sa.Column("name", sa.String(40), primary_key=True),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
    )


def downgrade() -> None:
    for table in ("secrets", "uploads", "peaks", "revisions"):
        op.drop_table(table)
    op.drop_column("clips", "published")
    op.drop_column("jobs", "revision")
