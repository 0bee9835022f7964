"""An agent of Pydantic AI, as somebody may have one already."""

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

counter = Agent(TestModel(custom_output_text="short"), instructions="You judge the length of articles.")
