"""Trees on binned rows: binning, histograms, splits, growing, predicting."""
