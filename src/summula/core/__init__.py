"""Sources, statistics, engine, estimator base, certificate, persistence: what every algorithm stands on."""
