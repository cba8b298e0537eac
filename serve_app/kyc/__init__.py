"""The identity-verification application: pure functions on pictures and text, then thin stages."""
