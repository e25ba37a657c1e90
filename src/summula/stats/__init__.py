"""Statistics shared by models: tables of coefficients; later families, normals and bounds."""
