"""Commands about jobs, capabilities and the workers that run them."""
