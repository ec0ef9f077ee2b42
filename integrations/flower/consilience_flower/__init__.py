"""Carries Consilience's questions and answers between sites by Flower."""
