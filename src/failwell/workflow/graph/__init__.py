"""The graph of a plan: nodes and edges as data, and its drawings as text, Mermaid and SVG."""
