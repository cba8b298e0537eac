"""Where models come from (pinned files in packages) and how they become the ONNX files that both profiles serve."""
