"""Why each revision of a transcript was made, and by whom. Of those of before, nobody knows."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for column in (
        sa.Column("reason", sa.String(20)),
        sa.Column("restored", sa.Integer),
        sa.Column("author", sa.String(64)),
    ):
        op.add_column("revisions", column)
