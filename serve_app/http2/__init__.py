"""HTTP/2 (RFC 9113): what both ends of a connection have in common, and the end of a server that anybody may call."""
