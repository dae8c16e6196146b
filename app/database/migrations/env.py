"""Run by Alembic. The caller provides the connection and its transaction."""

from alembic import context

from app.database.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,  # SQLite can hardly alter tables: Alembic creates them anew
    compare_type=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
