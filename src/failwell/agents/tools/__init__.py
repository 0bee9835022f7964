"""The tools that a file can define: Python functions, commands, files below a folder, and HTTPS requests."""
