"""The store of jobs: its protocol, its SQLite implementation, and jobs as rows."""
