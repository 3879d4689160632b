"""Mutation test of the protocol's code: which level of the tests finds a defect in it (docs/development.md)."""
