"""Masks: what of a patch is to be seen. A family is a file in this folder, named in the last lines."""
