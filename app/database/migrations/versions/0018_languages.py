"""The languages of a transcript in several, by their parts. Those of before are not known."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("languages", sa.JSON()))
