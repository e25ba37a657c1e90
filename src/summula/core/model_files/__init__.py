"""Saved models: one safetensors file that holds data, never code.

Reading order: `persistence` (save and load), `encoding` (objects as JSON and tensors), `classes` (which can be saved),
`schema` with `fields` and `array_fields` (what the state of a class may be), `model_file` (the file itself),
`json_limits` (its header measured before it is parsed).
"""
