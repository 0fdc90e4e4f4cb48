"""Data that ships with the program: embedded models, portraits, the face mesh. Imports nothing."""
