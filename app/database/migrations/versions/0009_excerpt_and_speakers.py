"""What a list of jobs shows of a transcript. Those of older jobs are not known until they are corrected."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("excerpt", sa.Text()))
    op.add_column("jobs", sa.Column("speakers", sa.JSON()))
