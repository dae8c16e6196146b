"""The channel in the key of a clip. All clips so far are of the mix of all channels, which is channel 0."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COLUMNS = 'job_number, start, "end", language, deaths, result, published'


def upgrade() -> None:
    _rebuild(sa.Column("channel", sa.Integer, primary_key=True, autoincrement=False, server_default="0"))


def downgrade() -> None:
    op.execute("DELETE FROM clips WHERE channel <> 0")  # their keys would no longer differ
    _rebuild()


def _rebuild(*more_of_key: sa.Column[int]) -> None:
    """Copy the table to one with another primary key. SQLite has no other way to change that."""
    op.rename_table("clips", "old_clips")
    op.create_table(
        "clips",
        sa.Column("job_number", NUMBER, sa.ForeignKey("jobs.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("start", sa.BigInteger, primary_key=True),
        sa.Column("end", sa.BigInteger, primary_key=True),
        sa.Column("language", sa.String(16), primary_key=True),
        *more_of_key,
        sa.Column("deaths", sa.Integer, nullable=False),
        sa.Column("result", sa.LargeBinary),
        sa.Column("published", sa.Boolean, nullable=False, server_default=sa.false()),
    )
    op.execute(f"INSERT INTO clips ({COLUMNS}) SELECT {COLUMNS} FROM old_clips")
    op.drop_table("old_clips")
