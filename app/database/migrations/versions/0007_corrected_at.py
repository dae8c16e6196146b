"""When people last corrected the transcript of each job. Every revision of an older database counts."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the column, with the time of the newest revision."""
    op.add_column("jobs", sa.Column("corrected_at", sa.Float))
    op.execute(
        "UPDATE jobs SET corrected_at = "
        "(SELECT max(created_at) FROM revisions WHERE job_number = jobs.number) WHERE revision > 0"
    )
