"""Commands about Temporal: its development server, the workers, and jobs that it distributes."""
