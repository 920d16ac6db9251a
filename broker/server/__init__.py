"""The gRPC edge: what comes in becomes a domain request, what goes out a message or a status."""
