"""SFace (Zhong et al. 2021): a face embedding network for the slot that a licensed ArcFace fits too.

The file is OpenCV Zoo's `face_recognition_sface_2021dec`, block-quantised. It takes RGB and normalises by itself.
"""

from __future__ import annotations

from serve_app.weights import fold, graph
from serve_app.weights.prepared import Prepared


def prepare(source: bytes) -> Prepared:
    """`crop` uint8 [batch, 112, 112, 3], BGR, aligned to the ArcFace template → `embedding` fp32 [batch, 128].

    The embedding has length 1, so the dot product of two is their cosine similarity.
    """
    model = graph.load(source)
    fold.fold_constants(model)
    fold.drop_dropout(model)
    fold.fold_batch_normalization(model)
    fold.rewrite_prelu(model)
    graph.reverse_input_channels(model)
    graph.take_uint8_images(model, "crop", 112, 112)
    graph.append(
        model,
        """
        normalise (float[batch, 128] fc1) => (float[batch, 128] embedding)
        { embedding = LpNormalization <axis = 1, p = 2> (fc1) }
        """,
    )
    return Prepared(graph.finish(model))
