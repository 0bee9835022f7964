"""The graph of a plan: nodes and edges as data, and as text, Mermaid and SVG."""
