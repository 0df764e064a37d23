"""Formats of lines, one record each: bytes -> SERPs in compiled kernels, and back."""
