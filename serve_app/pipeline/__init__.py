"""Running a pipeline: its steps as a graph, its stages as Ray Serve deployments."""
