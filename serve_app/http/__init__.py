"""The HTTP ingress: a pipeline's route, what it reads from a request, and what it answers."""
