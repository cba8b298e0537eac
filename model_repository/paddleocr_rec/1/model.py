# Runs the folder's model.onnx with ONNX Runtime in Triton's python backend.
# Generated from cluster/spec.yaml by `tandem render`; change that file, not this one.
from serve_app.triton.backend.onnx_model import TritonPythonModel

__all__ = ["TritonPythonModel"]
