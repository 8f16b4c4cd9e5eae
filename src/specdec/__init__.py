"""Speculative decoding, decoded, measured and proven (Leviathan, Kalman, Matias, ICML 2023)."""

__version__ = "0.1.0"
