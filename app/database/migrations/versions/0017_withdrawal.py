"""The owner of each link, signed or shared: what it has made can be withdrawn."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Operators may have shared jobs of others, too, but nobody knows which."""
    op.add_column("shared_links", sa.Column("owner", sa.String(64), nullable=False, server_default=""))
    has_revisions = sa.Column("has_revisions", sa.Boolean, nullable=False, server_default=sa.false())
    op.add_column("shared_links", has_revisions)
    owner = "SELECT owner FROM jobs WHERE jobs.number = shared_links.job_number"
    op.execute(f"UPDATE shared_links SET owner = ({owner}), has_revisions = may_correct")
    owner_column = sa.Column("owner", sa.String(64), primary_key=True)
    table = op.create_table("link_secrets", owner_column, sa.Column("value", sa.LargeBinary, nullable=False))
    # Signed links that are valid now stay so, as if links had made them.
    op.execute("INSERT INTO link_secrets SELECT 'link', value FROM secrets WHERE name = 'links'")
    op.execute("DELETE FROM secrets WHERE name = 'links'")
    owners = op.get_bind().scalars(sa.text("SELECT DISTINCT owner FROM jobs WHERE owner != ''"))
    op.bulk_insert(table, [{"owner": owner, "value": secrets.token_bytes(32)} for owner in owners])
    op.create_index("jobs_by_size", "jobs", ["owner", "file", "size", "duration", "revision"])
