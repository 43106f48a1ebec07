"""Attacks on the real daemon, as the people and images of a shared machine could try them; attack.py has what they share."""
