"""The cards of the window, a file each: what a person can set, page by page."""
