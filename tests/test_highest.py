"""The highest of many scores: `_internal.highest`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_bert._internal.highest import highest


@given(
    st.lists(st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0, np.inf, np.nan]), max_size=20),
    st.integers(1, 25),
    st.sampled_from([np.float32, np.float64]),
)
def test_they_are_the_first_of_a_stable_sort(scores: list[float], count: int, dtype: type) -> None:
    row = np.array(scores, dtype)
    expected = np.argsort(-row, kind="stable")[:count]
    assert highest(row, count).tolist() == expected.tolist()
