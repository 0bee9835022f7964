"""When jobs start: rate limits of capabilities, and schedules."""
