"""The job and the type of each webhook: a newer one replaces it. Those that wait have none, and are sent."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("job_id", sa.String(40), nullable=False, server_default=""))
    op.add_column("deliveries", sa.Column("type", sa.String(32), nullable=False, server_default=""))
    op.create_index("deliveries_by_job", "deliveries", ["job_id"])
    op.create_index("deliveries_by_owner", "deliveries", ["owner", "attempts", "next_at", "id"])
