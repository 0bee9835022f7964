"""What agents may be given from outside their file: skills, and plugins that hold skills, agents and servers."""
