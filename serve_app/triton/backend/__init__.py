"""Code that runs inside Triton, in the processes of its python backend."""

# The module of the TritonPythonModel that runs the model.onnx beside a model.py.
ONNX_MODEL = "serve_app.triton.backend.onnx_model"
