"""YAML files that people write, with one clear line for what is wrong in them."""

from pathlib import Path

import yaml

from specdec.errors import UserError


def read_yaml(path: str | Path) -> dict:
    """The mapping a YAML file holds; raises ``UserError`` when it is missing, broken or no mapping."""
    try:
        value = yaml.safe_load(Path(path).read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not valid YAML ({error})") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: must be a mapping of keys to values")
    return value
