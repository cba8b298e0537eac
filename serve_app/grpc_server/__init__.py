"""A gRPC server over `serve_app.http2`: messages in and out as bytes, refusals as gRPC's codes.

Source: gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md) and the codes of its libraries (grpc/doc/statuscodes.md).
"""
