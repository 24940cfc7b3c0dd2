"""Loading, wrapping and running models; the only room that knows TransformerLens."""
