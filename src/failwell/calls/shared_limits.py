"""Limits that several processes share: what a store of them offers, and how a guard or a budget uses one."""
