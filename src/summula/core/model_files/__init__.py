"""Saved models: one safetensors file that holds data, never code.

Reading order: `persistence` (save and load), `encoding` (objects as JSON and tensors), `classes` (the classes that can
be saved), `schema` with `fields` and `array_fields` (declarations of the saved state), `model_file` (the file format),
`json_limits` (limits on the header, checked before it is parsed).
"""
