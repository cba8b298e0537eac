"""All that touches a Triton server: find it, own it, call it. `backend/` is code that runs inside it."""
