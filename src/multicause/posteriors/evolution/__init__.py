"""Helpers of the posterior ``Evolved``: states of rows as bits, their log joints by flips, children and survivors."""
