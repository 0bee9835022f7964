"""Workflow runs on Temporal: submitted, driven by a workflow, carried out by activities, and copied into the local journal."""
