"""The voices in a job's clips, and the voices that its client knows."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _job_number() -> sa.Column[int]:
    return sa.Column("job_number", NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True)


def upgrade() -> None:
    op.create_table(
        "voices",
        _job_number(),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("end", sa.BigInteger, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "known_speakers",
        _job_number(),
        sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("embedding", sa.LargeBinary, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("known_speakers")
    op.drop_table("voices")
