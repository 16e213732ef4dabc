"""The hierarchy of errors and warnings."""

import pickle
import warnings

import pytest

from wordpiece_bert import errors

BUILT_INS = {
    "VocabError": [ValueError],
    "TokenizerFormatError": [ValueError],
    "InputError": [ValueError, TypeError],
    "TrainingError": [ValueError],
    "ConfigError": [ValueError],
    "CheckpointError": [ValueError, OSError],
    "ModelNotFoundError": [ValueError, FileNotFoundError],
    "NonFiniteError": [ArithmeticError],
    "MissingPackageError": [errors.InputError, ImportError],
    "InternalError": [RuntimeError],
}


def test_every_error_is_listed_here_and_exported() -> None:
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined == set(errors.__all__)
    assert {name for name in defined if issubclass(getattr(errors, name), errors.WordPieceError)} == {
        "WordPieceError",
        *BUILT_INS,
    }


@pytest.mark.parametrize("name", BUILT_INS)
def test_errors_are_caught_as_the_usual_built_ins(name: str) -> None:
    for base in (errors.WordPieceError, *BUILT_INS[name]):
        with pytest.raises(base, match=r"^what, which value, where$"):
            raise getattr(errors, name)("what, which value, where")


@pytest.mark.parametrize("name", BUILT_INS)
def test_error_survives_pickle(name: str) -> None:
    error = pickle.loads(pickle.dumps(getattr(errors, name)("text")))
    assert type(error).__name__ == name
    assert str(error) == "text"


@pytest.mark.parametrize("name", ["CheckpointWarning", "TruncationWarning"])
def test_warnings_can_be_silenced_individually(name: str) -> None:
    category = getattr(errors, name)
    assert issubclass(category, UserWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category)
        warnings.warn("text", category, stacklevel=1)
