"""YuNet (Wu, Peng and Yu 2023): a face detector whose boxes and landmarks are decoded inside the graph.

The file is OpenCV Zoo's `face_detection_yunet_2023mar`, block-quantised. Decoding follows OpenCV's `FaceDetectorYN`
(modules/objdetect/src/face_detect.cpp). For an anchor of stride s in column c and row r:
score = sqrt(cls · obj), centre = ((c + dx) · s, (r + dy) · s), size = (exp(dw) · s, exp(dh) · s) and
landmark = ((c + kx) · s, (r + ky) · s).
"""

from __future__ import annotations

from onnx import ModelProto

from serve_app.weights import fold, graph
from serve_app.weights.prepared import Prepared

CANDIDATES = 256
_STRIDES = (8, 16, 32)
_HEADS = ("cls", "obj", "bbox", "kps")

# The outputs of one stride as rows [batch, 16, anchors], and its anchors [anchors, 3]: column, row, stride.
_LEVEL = """
    map_{s} = Concat <axis = 1> (cls_map_{s}, obj_map_{s}, bbox_map_{s}, kps_map_{s})
    rows_{s} = Reshape (map_{s}, flat)
    width_{s} = Shape <start = 3, end = 4> (map_{s})
    anchors_{s} = Shape <start = 2> (rows_{s})
    count_{s} = Squeeze (anchors_{s})
    index_{s} = Range (zero, count_{s}, one)
    column_{s} = Mod (index_{s}, width_{s})
    row_{s} = Div (index_{s}, width_{s})
    strides_{s} = Expand (stride_{s}, anchors_{s})
    upright_column_{s} = Unsqueeze (column_{s}, last)
    upright_row_{s} = Unsqueeze (row_{s}, last)
    upright_strides_{s} = Unsqueeze (strides_{s}, last)
    grid_{s} = Concat <axis = 1> (upright_column_{s}, upright_row_{s}, upright_strides_{s})
"""

# Appended anchors of score 0 and stride 0, which decode to zeros, make sure that there are enough to choose from.
_BEST = """
    rows = Concat <axis = 2> (rows_8, rows_16, rows_32)
    logits, offset_rows = Split <axis = 1> (rows, two_and_fourteen)
    likelihoods = Sigmoid (logits)
    joint = ReduceProd <keepdims = 0> (likelihoods, heads)
    real_scores = Sqrt (joint)
    scores = Pad (real_scores, after_scores)
    real_offsets = Transpose <perm = [0, 2, 1]> (offset_rows)
    offsets = Pad (real_offsets, after_offsets)
    integer_grid = Concat <axis = 0> (grid_8, grid_16, grid_32)
    real_grid = Cast <to = 1> (integer_grid)
    grid = Pad (real_grid, after_grid)

    best_scores, best = TopK <axis = 1> (scores, candidate_count)
    upright_best = Unsqueeze (best, last)
    best_offsets = GatherND <batch_dims = 1> (offsets, upright_best)
    best_grid = Gather <axis = 0> (grid, best)
    cell, stride = Split <axis = 2> (best_grid, two_and_one)
    centre_offset, log_size, landmark_offsets = Split <axis = 2> (best_offsets, two_two_and_ten)

    centre_cells = Add (centre_offset, cell)
    centre = Mul (centre_cells, stride)
    size_cells = Exp (log_size)
    size = Mul (size_cells, stride)
    half_size = Mul (size, half)
    corner = Sub (centre, half_size)
    five_cells = Tile (cell, five_times)
    landmark_cells = Add (landmark_offsets, five_cells)
    landmarks = Mul (landmark_cells, stride)
    score = Unsqueeze (best_scores, last)
    candidates = Concat <axis = 2> (score, corner, size, landmarks)
"""

_DECODING = f"""
decode () => (float[batch, {CANDIDATES}, 15] candidates)
<
    int64[3] flat = {{0, 16, -1}}, int64[1] last = {{-1}}, int64 zero = {{0}}, int64 one = {{1}},
    int64 stride_8 = {{8}}, int64 stride_16 = {{16}}, int64 stride_32 = {{32}},
    int64[2] two_and_fourteen = {{2, 14}}, int64[2] two_and_one = {{2, 1}}, int64[3] two_two_and_ten = {{2, 2, 10}},
    int64[4] after_scores = {{0, 0, 0, {CANDIDATES}}}, int64[6] after_offsets = {{0, 0, 0, 0, {CANDIDATES}, 0}},
    int64[4] after_grid = {{0, 0, {CANDIDATES}, 0}}, int64[1] candidate_count = {{{CANDIDATES}}},
    int64[1] heads = {{1}}, int64[3] five_times = {{1, 1, 5}}, float half = {{0.5}}
>
{{ {"".join(_LEVEL.format(s=stride) for stride in _STRIDES)} {_BEST} }}
"""


def prepare(source: bytes) -> Prepared:
    """`image` uint8 [batch, H, W, 3], BGR, H and W multiples of 32 → `candidates` fp32 [batch, 256, 15].

    A candidate is score, x, y, w, h, then five landmarks x, y in input pixels: right eye, left eye, nose tip, right and
    left mouth corner of the person. They are the best by score, descending, before non-maximum suppression; where the
    image has fewer anchors the rest is zeros.
    """
    model = graph.load(source)
    fold.fold_constants(model)
    graph.take_uint8_images(model, "image", "height", "width")
    for stride in _STRIDES:
        for head in _HEADS:
            graph.rename(model, _feature_map(model, f"{head}_{stride}"), f"{head}_map_{stride}")
    graph.append(model, _DECODING)
    return Prepared(graph.finish(model))


def _feature_map(model: ModelProto, output: str) -> str:
    """The map [batch, C, H/stride, W/stride] that the network transposes and flattens into `output`."""
    node = graph.producer(model, output)
    while node.op_type in {"Sigmoid", "Reshape"}:
        node = graph.producer(model, node.input[0])
    if node.op_type != "Transpose":
        raise ValueError(f"{output} comes from {node.op_type}, not from a feature map that is transposed and flattened")
    return node.input[0]
