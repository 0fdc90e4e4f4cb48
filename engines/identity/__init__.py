"""Who a face is: source photos, recognisers and the converters between them. A family is one file in this folder."""
