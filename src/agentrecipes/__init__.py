"""One YAML file says how a language-model agent is trained."""

__version__ = "0.1.0"
