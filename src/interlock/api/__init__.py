"""The HTTP API of the embedded controller: routes by noun, problem documents, tokens, server-sent events, metrics.

A route reads its arguments, asks whether the caller may, calls one function of `control` or one view of the read model,
and answers. No decision of the controller is taken here. Control functions wait for the disk; they run on threads.
"""
