"""The pages that are not of one run: comparisons, boxes, history, gate, forecast, fitness."""
