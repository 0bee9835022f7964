"""Clients of what work runs on: containers and remote shells."""
