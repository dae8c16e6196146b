"""Where a job comes from: the id of the request that submitted it, and that request's trace."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("request_id", sa.String(128)))
    op.add_column("jobs", sa.Column("traceparent", sa.String(55)))


def downgrade() -> None:
    op.drop_column("jobs", "traceparent")
    op.drop_column("jobs", "request_id")
