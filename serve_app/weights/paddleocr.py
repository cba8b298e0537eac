"""PP-OCRv4 (PaddlePaddle's text detection and recognition) with pre- and post-processing inside the graph.

Both networks see BGR scaled to -1..1, as RapidOCR feeds them.
"""

from __future__ import annotations

from serve_app.weights import graph
from serve_app.weights.prepared import Prepared

_MEAN, _SCALE = 127.5, 1 / 127.5


def prepare_det(source: bytes) -> Prepared:
    """`image` uint8 [batch, H, W, 3], BGR, H and W multiples of 32 → `probability` uint8 [batch, H, W].

    It is each pixel's probability to be text, times 255 and rounded.
    """
    model = graph.load(source)
    graph.rename(model, model.graph.output[0].name, "text")
    graph.take_uint8_images(model, "image", "height", "width", mean=_MEAN, scale=_SCALE)
    graph.append(
        model,
        """
        quantise (float[batch, 1, height, width] text) => (uint8[batch, height, width] probability)
        <float full = {255}>
        {
            plane = Squeeze <axes = [1]> (text)
            scaled = Mul (plane, full)
            rounded = Round (scaled)
            probability = Cast <to = 2> (rounded)
        }
        """,
    )
    return Prepared(graph.finish(model))


def prepare_rec(source: bytes) -> Prepared:
    """`crop` uint8 [batch, 48, W, 3], BGR, a line of text → `indices` int32 and `confidences` fp32, both [batch, T].

    For each time step the likeliest class, 0 being CTC's blank, and its probability. Class i ≥ 1 is label i-1: the
    characters that the file carries, then the space that PP-OCR appends.
    """
    model = graph.load(source)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    labels = [*metadata.get("character", "").split("\n"), " "]
    classes = model.graph.output[0].type.tensor_type.shape.dim[-1].dim_value
    if classes != len(labels) + 1:
        raise ValueError(f"the network has {classes} classes, which are not the blank and {len(labels)} characters")
    graph.rename(model, model.graph.output[0].name, "likelihoods")
    graph.take_uint8_images(model, "crop", 48, "width", mean=_MEAN, scale=_SCALE)
    graph.append(
        model,
        """
        choose (float[batch, steps, classes] likelihoods)
            => (int32[batch, steps] indices, float[batch, steps] confidences)
        {
            likeliest = ArgMax <axis = 2, keepdims = 0> (likelihoods)
            indices = Cast <to = 6> (likeliest)
            confidences = ReduceMax <axes = [2], keepdims = 0> (likelihoods)
        }
        """,
    )
    return Prepared(graph.finish(model), labels)
