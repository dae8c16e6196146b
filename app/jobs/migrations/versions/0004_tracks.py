"""The sound tracks of a job's recording."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("audio_tracks", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("jobs", "audio_tracks")
