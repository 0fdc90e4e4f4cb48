"""Who a face is: source photos, recognisers and the converters between them. A family is one file in this folder."""

from engines.registry import import_all

import_all(__name__, __path__)
